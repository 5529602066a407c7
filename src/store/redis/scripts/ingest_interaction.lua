-- Something for the inbox. ARGV: plan {dedup, at, entry, claim_us}.
local plan = cjson.decode(ARGV[1])
for _, key in ipairs(plan.dedup) do
  if redis.call('ZSCORE', DEDUP, key) then
    return {'duplicate', 0}
  end
end
for _, key in ipairs(plan.dedup) do
  redis.call('ZADD', DEDUP, plan.at, key)
end
local now = server_time()
return {'new', put_in_inbox(plan.entry, now, now + plan.claim_us)}
