package catalog

import (
	"slices"
	"strconv"
	"strings"
)

// Recipes is the document that refusals refer to: in the repository, archives and, below
// /usr/share/doc/cellserver, packages.
const Recipes = "docs/RECIPES.md"

// seeRecipes names the server for people who know only their library.
const seeRecipes = "cellserver's " + Recipes

// RefuseValue is the reason to refuse values over a store on other machines.
const RefuseValue = "over a remote store (--store) cellserver keeps limits, not values, which the Redis there keeps: " +
	"CL.THROTTLE key max_burst count period counts and decides in one call; see " + seeRecipes + "#values"

// refusedRows are Redis's commands that are not available, with the reason.
func refusedRows() []*Command {
	const (
		noCluster     = "This instance has cluster support disabled"
		noReplication = "a cellserver follows another one by REPLICAOF and CL.SYNC, and Sentinel or REPLICAOF NO ONE changes the leader; see cellserver's docs/DEPLOY.md"
		noSwap        = "SWAPDB is not supported: a key's database is a part of its place in the store; use FLUSHDB"
	)
	var all []*Command
	for _, r := range append(dataRefusals(),
		refusal{RefuseChannel, "psubscribe:-2 ssubscribe:-2 pubsub:-2 punsubscribe:-1 sunsubscribe:-1 spublish:3"},
		refusal{noCluster, "cluster:-2 readonly:1 readwrite:1 asking:1"},
		refusal{noReplication, "sync:1 psync:-3 failover:-1"},
		refusal{noSwap, "swapdb:3"},
	) {
		all = append(all, r.rows()...)
	}
	return all
}

type refusal struct {
	reason   string
	commands string // each with its arity
}

func (r refusal) rows() (all []*Command) {
	for command := range strings.FieldsSeq(r.commands) {
		name, arity, _ := strings.Cut(command, ":")
		n, err := strconv.Atoi(arity)
		if err != nil {
			panic("catalog: arity of " + command)
		}
		all = append(all, &Command{Name: name, Arity: n, Refusal: r.reason})
	}
	return all
}

func insteadOf(what, instead, section string) string {
	return "cellserver keeps limits, not " + what + ": " + instead + "; see " + seeRecipes + "#" + section
}

// dataRefusals are the commands with which rate limiters keep their state in Redis, by type of value; the
// reason names the command to use instead.
func dataRefusals() []refusal {
	return []refusal{
		{
			"cellserver keeps counters and small values, not their parts and bits: INCR, SET and GET handle whole values, and " +
				"CL.THROTTLE key max_burst count period counts and decides in one call; see " + seeRecipes + "#values",
			"append:3 bitcount:-2 bitfield:-2 bitop:-4 bitpos:-3 getbit:3 getrange:4 lcs:-3 setbit:4 setrange:4 substr:4",
		}, {
			insteadOf("sorted sets", "CL.SLIDINGWINDOW key max_count period counts and decides in one call", "sorted-sets"),
			"bzmpop:-5 bzpopmax:-3 bzpopmin:-3 zadd:-4 zcard:2 zcount:4 zdiff:-3 zdiffstore:-4 zincrby:4 zinter:-3 zintercard:-3 " +
				"zinterstore:-4 zlexcount:4 zmpop:-4 zmscore:-3 zpopmax:-2 zpopmin:-2 zrandmember:-2 zrange:-4 zrangebylex:-4 " +
				"zrangebyscore:-4 zrangestore:-5 zrank:3 zrem:-3 zremrangebylex:4 zremrangebyrank:4 zremrangebyscore:4 zrevrange:-4 " +
				"zrevrangebylex:-4 zrevrangebyscore:-4 zrevrank:3 zscan:-3 zscore:3 zunion:-3 zunionstore:-4",
		}, {
			insteadOf("hashes", "CL.THROTTLE key max_burst count period is a funnel or token bucket in one call", "hashes"),
			"hdel:-3 hexists:3 hget:3 hgetall:2 hincrby:4 hincrbyfloat:4 hkeys:2 hlen:2 hmget:-3 hmset:-4 hrandfield:-2 hscan:-3 " +
				"hset:-4 hsetnx:4 hstrlen:3 hvals:2",
		}, {
			insteadOf("lists", "CL.BUCKET TAKE key capacity takes a token, and ADD and RESET fill the bucket", "lists"),
			"blmove:6 blmpop:-5 blpop:-3 brpop:-3 brpoplpush:4 linsert:5 llen:2 lmove:5 lmpop:-4 lpop:-2 " +
				"lpos:-3 lpush:-3 lpushx:-3 lrem:4 lset:4 rpop:-2 rpoplpush:3 rpush:-3 rpushx:-3 " +
				"sort:-2 sort_ro:-2",
		}, { // a list that is read or cut is a log of times
			insteadOf(
				"lists", "CL.SLIDINGWINDOW key max_count period counts the calls of a period and decides in one call",
				"n-in-a-period",
			),
			"lindex:3 lrange:4 ltrim:4",
		}, {
			insteadOf("sets", "CL.CONCURRENCY ACQUIRE key max lease_ms bounds how many there are at once", "how-many-at-once"),
			"sadd:-3 scard:2 sdiff:-2 sdiffstore:-3 sinter:-2 sintercard:-3 sinterstore:-3 sismember:3 smembers:2 smismember:-3 " +
				"smove:4 spop:-2 srandmember:-2 srem:-3 sscan:-3 sunion:-2 sunionstore:-3",
		},
	}
}

// Remote describes how a command differs over a store on other machines (--store).
type Remote struct {
	Name    string // the full name
	Refusal string // the reason why it is not available; "" if it is
	Differs string
}

// RemoteRows returns the commands that differ from those over the store in memory.
func RemoteRows() []Remote {
	const (
		ofLimits = "over a remote store (--store) named limits come from --limits-file only, so that all servers have the same: change it there and CL.LIMIT RELOAD"
		flushes  = "over a remote store (--store) nothing is flushed, for other data may be on its machines: DEL the keys, or flush it there"
	)
	all := []Remote{
		{Name: "cl.bthrottle", Differs: "Its turn is fixed when it debits: a client that gives up returns its debit, but later " +
			"ones do not move up. The five integers are as of the debit. If the store fails when units are to be returned, " +
			"they drain instead."},
		{Name: "cl.limit|del", Refusal: ofLimits},
		{Name: "cl.limit|override", Refusal: ofLimits},
		{Name: "cl.limit|set", Refusal: ofLimits},
		{Name: "cl.mthrottle", Differs: "On a cluster all keys have to be in one slot: give them the same {tag}. If other clients change them in each attempt " +
			"until --store-timeout is over, it is an error and nothing has changed."},
		{Name: "dbsize", Differs: "Counts all keys of the machines' databases, also those that are not this server's."},
		{Name: "del", Differs: "Deletes only keys that cellserver or redis-cell made. It is one step for a thousand keys at most, on a cluster for those of a slot."},
		{Name: "eval", Differs: "Only a script that is one call of CL.THROTTLE or of a command like it, such as return redis.call('CL.THROTTLE', KEYS[1], ...), is executed."},
		{Name: "eval_ro", Differs: "Every script is an error, for those that are one call write."},
		{Name: "evalsha", Differs: "As EVAL."},
		{Name: "evalsha_ro", Differs: "As EVAL_RO."},
		{Name: "exec", Differs: "On a cluster all keys have to be in one slot, else it is an error that begins with CROSSSLOT, and nothing has changed. " +
			"Commands about all keys are refused in it. Its commands are executed on what the keys were, and all changes are made in one step if nobody has changed them " +
			"meanwhile; else it is executed again, until --store-timeout is over, and then it is an error and nothing has changed. While the store does not answer, --on-store-error decides on " +
			"a transaction that has only CL.THROTTLE and commands like it, on each for itself. Scripts as EVAL."},
		{Name: "flushall", Refusal: flushes},
		{Name: "flushdb", Refusal: flushes},
		{Name: "info", Differs: "Keyspace counts as DBSIZE does, and is empty while the store does not answer."},
		{Name: "keys", Differs: "Only with a store of one machine, as SCAN. It may return a key twice."},
		{Name: "memory|usage", Refusal: "over a remote store (--store) a key takes the memory of its machines: ask them"},
		{Name: "restore", Differs: "Restores limiters only; a decimal is a funnel's TAT."},
		{Name: "set", Differs: "Sets a funnel's TAT only, in decimal Unix nanoseconds, and compares such TATs. Options of expiry are checked and have no effect, because a funnel expires when it is empty."},
		{Name: "scan", Differs: "Only with a store of one machine; a cluster's error says so. It may return a key twice, or none with a cursor to continue with, as Redis's does."},
		{Name: "select", Differs: "There is database 0 only: the one that --store names."},
		{Name: "unlink", Differs: "As DEL."},
		{Name: "watch", Refusal: "over a remote store (--store) keys can not be watched: use MULTI and EXEC without WATCH, or CL.MTHROTTLE for several limits at once"},
	}
	for _, c := range valueRows() {
		if c.Name != "get" {
			all = append(all, Remote{Name: c.Name, Refusal: RefuseValue})
		}
	}
	slices.SortFunc(all, func(a, b Remote) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// OverRemote returns the catalog for a store on other machines.
func (t *Catalog) OverRemote() *Catalog {
	for _, r := range RemoteRows() {
		if r.Refusal != "" {
			t = t.Without(r.Refusal, r.Name)
		}
	}
	return t
}
