-- Removes an interaction. ARGV: its position.
take_from_inbox(ARGV[1])
return 1
