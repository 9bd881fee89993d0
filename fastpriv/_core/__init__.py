"""What every room uses: validation, rounding, threads, the HiGHS door, whole files."""
