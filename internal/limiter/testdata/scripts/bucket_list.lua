-- A bucket in a list, of an element a token. KEYS: list. ARGV: capacity, 'take', 'add' or 'reset', tokens.
local capacity, what, tokens = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3])
local held = redis.call('LLEN', KEYS[1])
if what == 'take' then
  if held < tokens then
    return 0
  end
  for _ = 1, tokens do
    redis.call('LPOP', KEYS[1])
  end
  return 1
elseif what == 'reset' then
  redis.call('DEL', KEYS[1])
  held, tokens = 0, capacity
end
local fit = math.max(0, math.min(tokens, capacity - held))
for i = 1, fit do
  redis.call('RPUSH', KEYS[1], i)
end
return fit
