local call,sub,format=redis.call,string.sub,string.format
local key=KEYS[1]
local v=call('GETRANGE',key,0,19)
if v=='' then v=call('GET',key) end
--TIME
local s,n=S,N
if v then
 if #v>19 or v>'9223372036854775807' and #v==19 or v~='0' and not string.find(v,'^[1-9]%d*$') then return '!' end
 s,n=tonumber(sub(v,1,-10)) or 0,tonumber(sub(v,-9))
 if s<S or s==S and n<N then s,n=S,N end
end
local a,b=s,n
if #ARGV==FIRST+3 then
 local x,y=a+ARGV[FIRST],b+ARGV[FIRST+1]
 if y>=1e9 then x,y=x+1,y-1e9 end
 local l,m=S+ARGV[FIRST+2],N+ARGV[FIRST+3]
 if m>=1e9 then l,m=l+1,m-1e9 end
 if x<l or x==l and y<=m then a,b=x,y end
else
 for i=FIRST,#ARGV,5 do
  local k,c,d=ARGV[i]+0,ARGV[i+1]+0,ARGV[i+2]+0
  if k<0 then
   a,b=a-c,b-d
   if b<0 then a,b=a-1,b+1e9 end
   if a<S or a==S and b<N then a,b=S,N end
  else
   local l,m=S+ARGV[i+3],N+ARGV[i+4]
   if m>=1e9 then l,m=l+1,m-1e9 end
   local C,D,p,j={},{},1,0
   repeat
    local x,y=a+c,b+d
    if y>=1e9 then x,y=x+1,y-1e9 end
    if x>l or x==l and y>m then break end
    j=j+1
    C[j],D[j]=c,d
    c,d,p=c+c,d+d,p+p
    if d>=1e9 then c,d=c+1,d-1e9 end
   until p>k
   while j>0 do
    p=p/2
    local x,y=a+C[j],b+D[j]
    if y>=1e9 then x,y=x+1,y-1e9 end
    if p<=k and (x<l or x==l and y<=m) then a,b,k=x,y,k-p end
    j=j-1
   end
  end
 end
end
if a~=s or b~=n then
 if a>S or a==S and b>N then
  call('SET',key,format('%d%09d',a,b),'PX',format('%d',(a-S)*1000+math.ceil((b-N)/1e6)+LONGER))
 else
  call('DEL',key)
 end
end
return (v or '')..AT
