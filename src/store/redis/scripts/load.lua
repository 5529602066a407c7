-- Reads the checkpoint without a lease.
if not redis.call('HGET', META, 'ours') then
  return false
end
local version, snapshot, steps = saved()
return {version, snapshot, steps}
