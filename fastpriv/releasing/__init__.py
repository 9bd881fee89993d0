"""From a table to a sanitised table and back to its frequencies: the code of ``fp.release``."""
