"""Tests of killed and concurrent runs, damaged files and faulty compilers. Each module's first line names the fault."""
