-- A bucket in a counter. KEYS: counter. ARGV: capacity, 'take', 'add' or 'reset', tokens.
local capacity, what, tokens = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3])
local held = tonumber(redis.call('GET', KEYS[1]) or '0')
if what == 'take' then
  if held < tokens then
    return 0
  end
  redis.call('DECRBY', KEYS[1], tokens)
  return 1
elseif what == 'reset' then
  redis.call('SET', KEYS[1], capacity)
  return capacity
end
local fit = math.max(0, math.min(tokens, capacity - held))
redis.call('INCRBY', KEYS[1], fit)
return fit
