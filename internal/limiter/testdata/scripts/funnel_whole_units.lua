-- As funnel.lua, but space is made only when a whole unit has leaked since it was last made. KEYS: hash. ARGV: capacity,
-- microseconds in which a unit leaks, quantity, now.
local capacity, interval, quantity, now = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local state = redis.call('HMGET', KEYS[1], 'left_quota', 'leaking_ts')
local left, since = tonumber(state[1]) or capacity, tonumber(state[2]) or now
local leaked = (now - since) / interval
if leaked >= 1 then
  left, since = math.min(capacity, left + leaked), now
end
local allowed = 0
if left >= quantity then
  left = left - quantity
  allowed = 1
end
redis.call('HMSET', KEYS[1], 'left_quota', left, 'leaking_ts', since)
return allowed
