"""PTX as text and as a program: lexer, parser, statements, control flow, and the provable alignment of registers."""
