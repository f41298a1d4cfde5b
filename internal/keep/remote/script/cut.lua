local v=redis.call('GETRANGE',KEYS[1],0,19)
if v~=ARGV[1] then return 0 end
local t=redis.call('TIME')
local S,N=t[1]+0,t[2]*1000
local a,b=ARGV[2]+0,ARGV[3]+0
if a>S or a==S and b>N then
 redis.call('SET',KEYS[1],string.format('%d%09d',a,b),'PX',string.format('%d',(a-S)*1000+math.ceil((b-N)/1e6)))
else
 redis.call('DEL',KEYS[1])
end
return 1
