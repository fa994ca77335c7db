"""Evidence: the hashes, signatures and documents that let somebody who does not trust us check what was done."""
