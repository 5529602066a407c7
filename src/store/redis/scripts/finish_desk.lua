-- Takes a desk entry away. ARGV: its position.
take_from_desk(ARGV[1])
return 1
