-- Deletes a file unless another thread shows it. ARGV: the thread that no longer shows it. The last two keys are the
-- set of the threads that show the file, and the file.
local shown_in, file = KEYS[#KEYS - 1], KEYS[#KEYS]
redis.call('SREM', shown_in, ARGV[1])
if redis.call('SCARD', shown_in) == 0 then
  redis.call('DEL', file)
end
return 1
