-- Leases a thread if it is ready. ARGV: thread, worker, ttl in microseconds, now in milliseconds (people).
return acquire(ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]))
