"""PTX as text and as a program: lexer, parser, statements, and the alignment that registers are known to have."""
