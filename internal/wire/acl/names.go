package acl

// redisCommands are the commands of Redis 7.0 to 8.8 that have no subcommands.
const redisCommands = `
append arcount ardel ardelrange arget argetrange argrep arinfo arinsert arlastitems arlen armget armset arnext arop
arring arscan arseek arset asking auth bgrewriteaof bgsave bitcount bitfield bitfield_ro bitop bitpos blmove blmpop
blpop brpop brpoplpush bzmpop bzpopmax bzpopmin copy dbsize debug decr decrby del delex digest discard dump echo
eval eval_ro evalsha evalsha_ro exec exists expire expireat expiretime failover fcall fcall_ro flushall flushdb
geoadd geodist geohash geopos georadius georadius_ro georadiusbymember georadiusbymember_ro geosearch geosearchstore
get getbit getdel getex getrange getset hdel hello hexists hexpire hexpireat hexpiretime hget hgetall hgetdel hgetex
hincrby hincrbyfloat hkeys hlen hmget hmset hpersist hpexpire hpexpireat hpexpiretime hpttl hrandfield hscan hset
hsetex hsetnx hstrlen httl hvals incr incrby incrbyfloat increx info keys lastsave lcs lindex linsert llen lmove
lmpop lolwut lpop lpos lpush lpushx lrange lrem lset ltrim mget migrate monitor move mset msetex msetnx multi
persist pexpire pexpireat pexpiretime pfadd pfcount pfdebug pfmerge pfselftest ping psetex psubscribe psync pttl
publish punsubscribe quit randomkey readonly readwrite rename renamenx replconf replicaof reset restore
restore-asking role rpop rpoplpush rpush rpushx sadd save scan scard sdiff sdiffstore select set setbit setex setnx
setrange shutdown sinter sintercard sinterstore sismember slaveof smembers smismember smove sort sort_ro spop
spublish srandmember srem sscan ssubscribe strlen subscribe substr sunion sunionstore sunsubscribe swapdb sync time
touch ttl type unlink unsubscribe unwatch vadd vcard vdim vemb vgetattr vinfo vismember vlinks vrandmember vrange
vrem vsetattr vsim wait waitaof watch xack xackdel xadd xautoclaim xcfgset xclaim xdel xdelex xlen xnack xpending
xrange xread xreadgroup xrevrange xsetid xtrim zadd zcard zcount zdiff zdiffstore zincrby zinter zintercard
zinterstore zlexcount zmpop zmscore zpopmax zpopmin zrandmember zrange zrangebylex zrangebyscore zrangestore zrank
zrem zremrangebylex zremrangebyrank zremrangebyscore zrevrange zrevrangebylex zrevrangebyscore zrevrank zscan zscore
zunion zunionstore
`

// redisContainers are the others: a line has a command and some of its subcommands.
const redisContainers = `
acl cat deluser dryrun genpass getuser help list load log save setuser users whoami
client caching getname getredir help id info kill list no-evict no-touch pause reply setinfo setname tracking
client trackinginfo unblock unpause
cluster addslots addslotsrange bumpepoch count-failure-reports countkeysinslot delslots delslotsrange failover
cluster flushslots forget getkeysinslot help info keyslot links meet myid myshardid nodes replicas replicate reset
cluster migration saveconfig set-config-epoch setslot shards slaves slot-stats slots
command count docs getkeys getkeysandflags help info list
config get help resetstat rewrite set
function delete dump flush help kill list load restore stats
hotkeys get help reset start stop
latency doctor graph help histogram history latest reset
memory doctor help malloc-stats purge stats usage
module help list load loadex unload
object encoding freq help idletime refcount
pubsub channels help numpat numsub shardchannels shardnumsub
script debug exists flush help kill load
slowlog get help len reset
xgroup create createconsumer delconsumer destroy help setid
xinfo consumers groups help stream
`
