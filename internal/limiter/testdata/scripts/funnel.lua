-- A funnel in a hash: what is left of its capacity, and since when it has leaked. KEYS: hash. ARGV: capacity, microseconds in
-- which a unit leaks, quantity, now.
local capacity, interval, quantity, now = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local rate = 1 / (interval / 1000000)
now = now / 1000000
local state = redis.call('HMGET', KEYS[1], 'left_quota', 'leaking_ts')
local left = tonumber(state[1]) or capacity
left = math.min(capacity, left + (now - (tonumber(state[2]) or now)) * rate)
local allowed = 0
if left >= quantity then
  left = left - quantity
  allowed = 1
end
redis.call('HMSET', KEYS[1], 'left_quota', left, 'leaking_ts', now)
return allowed
