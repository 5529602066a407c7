-- Stores an entry for the inbox. ARGV: plan {dedup, at, entry, claim_us}.
local plan = cjson.decode(ARGV[1])
if is_repeat(plan) then
  return {'duplicate', 0}
end
local now = server_time()
return {'new', put_in_inbox(plan.entry, now, now + plan.claim_us)}
