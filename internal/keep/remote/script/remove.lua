-- See keyScripts.remove.
--TIME
local r, ours = {now}, {}
for i = 1, #KEYS do
  local v = redis.pcall('GETRANGE', KEYS[i], 0, ARGV[2] - 1)
  if type(v) == 'table' then
    if string.sub(v.err, 1, 9) ~= 'WRONGTYPE' then return v end
    return {now}
  end
  if string.sub(v, 1, 4) == 'cl1:' then
    ours[#ours + 1] = KEYS[i]
  elseif #v < 20 and (v == '0' or string.find(v, '^[1-9]%d*$')) and (#v < 19 or v <= '9223372036854775807') then
    if #v > #now or #v == #now and v > now then ours[#ours + 1] = KEYS[i] end
  elseif v ~= '' or redis.call('EXISTS', KEYS[i]) == 1 then
    return {now}
  end
  r[i + 1] = v
end
for i = 1, #ours do redis.call('DEL', ours[i]) end
return r
