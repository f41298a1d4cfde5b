// Package keys has the commands about keys, one by one and all together. Its handlers are safe for concurrent
// use.
package keys

import (
	"context"
	"maps"
	"math"
	"slices"
	"time"

	"cellserver/internal/limiter"
	"cellserver/internal/limiter/value"
	"cellserver/internal/redis/argument"
	"cellserver/internal/redis/background"
	"cellserver/internal/redis/execute"
	"cellserver/internal/redis/reply"
	"cellserver/internal/redis/transact"
	"cellserver/internal/resp"
	"cellserver/internal/store"
	"cellserver/internal/store/rdb"
	"cellserver/internal/wire/glob"
)

type handlers struct{ execute.Config }

// Handlers returns the handlers by their commands' full names.
func Handlers(c execute.Config) map[string]execute.Handler {
	k := handlers{c}
	plain, whole, payloads := execute.Plain, execute.Whole, codec{rdb.NewCodec(), c.MaxValueBytes}
	all := map[string]execute.Handler{
		"del":             plain(del),
		"unlink":          plain(del),
		"cl.reset":        plain(del),
		"exists":          plain(exists),
		"touch":           plain(exists),
		"ttl":             plain(timeOf(func(expiresNs, nowNs int64) int64 { return roundSec(leftMs(expiresNs, nowNs)) })),
		"pttl":            plain(timeOf(leftMs)),
		"expiretime":      plain(timeOf(func(expiresNs, _ int64) int64 { return roundSec(cutMs(expiresNs)) })),
		"pexpiretime":     plain(timeOf(func(expiresNs, _ int64) int64 { return cutMs(expiresNs) })),
		"expire":          plain(expire(1000, false)),
		"pexpire":         plain(expire(1, false)),
		"expireat":        plain(expire(1000, true)),
		"pexpireat":       plain(expire(1, true)),
		"persist":         plain(persist),
		"type":            plain(typeCommand),
		"rename":          plain(rename),
		"renamenx":        plain(renameNX),
		"dump":            plain(payloads.dump),
		"restore":         plain(payloads.restore),
		"object|encoding": plain(objectEncoding),
		"memory|usage":    whole(memoryUsage),
		"dbsize":          whole(k.dbSize),
		"flushdb":         whole(flushDB),
		"flushall":        whole(flushAll),
		"scan":            whole(k.scan),
		"keys":            whole(k.keys),
	}
	maps.Copy(all, k.values())
	return all
}

// values are the handlers of the commands on values alone.
func (k handlers) values() map[string]execute.Handler {
	plain := execute.Plain
	return map[string]execute.Handler{
		"set":         plain(k.set),
		"setnx":       plain(k.setNX),
		"setex":       plain(k.setEX("ex")),
		"psetex":      plain(k.setEX("px")),
		"getdel":      plain(getDel),
		"getset":      plain(k.getSet),
		"delex":       plain(delEx),
		"delifeq":     plain(delIfEq),
		"digest":      plain(digest),
		"getex":       plain(getEx),
		"incrbyfloat": plain(k.incrByFloat),
		"increx":      plain(k.increxFloat),
		"mset":        plain(k.mSet),
		"msetex":      plain(k.mSetEx),
		"msetnx":      plain(k.mSetNX),
		"mget":        plain(k.mGet),
		"strlen":      plain(strLen),
	}
}

// backgroundKeys is the largest number of keys handled on the event loop.
const backgroundKeys = 1000

func del(c execute.Call, args [][]byte) error {
	return onKeys(c, args[1:], execute.Call.Delete)
}

func exists(c execute.Call, args [][]byte) error {
	return onKeys(c, args[1:], func(c execute.Call, keys []store.Key) (n int, err error) {
		for _, key := range keys {
			_, ok, err := c.Entry(key.Name)
			if err != nil {
				return n, err
			}
			if ok {
				n++
			}
		}
		return n, nil
	})
}

// onKeys replies a number of keys. It counts many in chunks in the background, so that other clients are
// served between them, and ends when the client has gone.
func onKeys(c execute.Call, names [][]byte, count func(c execute.Call, keys []store.Key) (int, error)) error {
	if len(names) <= backgroundKeys {
		n, err := count(c, keysOf(c, names))
		if err == nil {
			c.Reply().Int(int64(n))
		}
		return err
	}
	names = c.Keep(names)
	var n int
	var err error
	return c.Background(func(ctx context.Context, _ int64) {
		for some := range slices.Chunk(names, backgroundKeys) {
			var of int
			if of, err = count(c, keysOf(c, some)); err != nil || ctx.Err() != nil {
				return
			}
			if n += of; !c.HoldsKeys() {
				background.Yield()
			}
		}
	}, func(c execute.Call) error {
		if err == nil {
			c.Reply().Int(int64(n))
		}
		return err
	})
}

func keysOf(c execute.Call, names [][]byte) []store.Key {
	keys := make([]store.Key, len(names))
	for i, name := range names {
		keys[i] = c.Key(name)
	}
	return keys
}

// Replies of TTL and its family without a time.
const (
	absent  = -2
	endless = -1 // exists and does not expire
)

// timeOf returns the handler that replies a function of a key's expiry.
func timeOf(of func(expiresNs, nowNs int64) int64) func(c execute.Call, args [][]byte) error {
	return func(c execute.Call, args [][]byte) error {
		e, ok, err := c.Entry(args[1])
		switch {
		case err != nil:
			return err
		case !ok:
			c.Reply().Int(absent)
		case e.ExpiresNs == limiter.NeverNs:
			c.Reply().Int(endless)
		default:
			c.Reply().Int(of(e.ExpiresNs, c.Now()))
		}
		return nil
	}
}

// As in Redis, milliseconds are truncated and seconds rounded from those.

func cutMs(ns int64) int64 { return ns / int64(time.Millisecond) }

func roundSec(ms int64) int64 { return (ms + 500) / 1000 }

// leftMs counts a whole millisecond, when a value expires, from the present one's beginning, as Redis does.
func leftMs(expiresNs, nowNs int64) int64 {
	if expiresNs%int64(time.Millisecond) == 0 {
		nowNs -= nowNs % int64(time.Millisecond)
	}
	return cutMs(expiresNs - nowNs)
}

// typeCommand is TYPE: string for a funnel, as redis-cell stores it, and own types for other limiters.
func typeCommand(c execute.Call, args [][]byte) error {
	e, ok, err := c.Entry(args[1])
	switch {
	case err != nil:
		return err
	case ok:
		c.Reply().Status(e.Kind.Type())
	default:
		c.Reply().Status("none")
	}
	return nil
}

func objectEncoding(c execute.Call, args [][]byte) error {
	e, ok, err := c.Entry(args[2])
	switch {
	case err != nil:
		return err
	case ok && e.Kind == limiter.Value:
		return valueEncoding(c, args[2])
	case ok:
		c.Reply().BulkString(e.Kind.Row().Encoding)
	default:
		c.Reply().Null()
	}
	return nil
}

func valueEncoding(c execute.Call, name []byte) error {
	encoding := ""
	if err := c.See(name, func(s *limiter.State) { encoding = value.Encoding(s.Payload) }); err != nil {
		return err
	}
	if encoding == "" {
		c.Reply().Null()
	} else {
		c.Reply().BulkString(encoding)
	}
	return nil
}

// memoryUsage is MEMORY USAGE key [SAMPLES count].
func memoryUsage(c execute.Call, all store.Walker, args [][]byte) error {
	for rest := args[3:]; len(rest) > 0; rest = rest[2:] {
		if len(rest) == 1 || glob.Fold(rest[0]) != "samples" {
			return reply.ErrSyntax
		}
		if n, err := argument.Int(rest[1]); err != nil {
			return err
		} else if n < 0 {
			return reply.ErrSyntax
		}
	}
	if n, ok := all.MemoryUsage(c.Now(), c.Key(args[2])); ok {
		c.Reply().Int(int64(n))
	} else {
		c.Reply().Null()
	}
	return nil
}

func (k handlers) dbSize(c execute.Call, all store.Walker, _ [][]byte) error {
	counts := make([]store.KeyCount, k.Databases)
	return c.Background(func(ctx context.Context, nowNs int64) { all.Count(ctx, nowNs, counts) }, func(c execute.Call) error {
		if err := transact.WalkFailed(all); err != nil {
			return err
		}
		c.Reply().Int(int64(counts[c.DB()].Keys))
		return nil
	})
}

func flushDB(c execute.Call, all store.Walker, args [][]byte) error {
	if err := checkFlush(args); err != nil {
		return err
	}
	db := c.DB()
	return c.Background(func(ctx context.Context, _ int64) { all.Flush(ctx, db) }, execute.Call.OK)
}

func flushAll(c execute.Call, all store.Walker, args [][]byte) error {
	if err := checkFlush(args); err != nil {
		return err
	}
	all.FlushAll()
	return c.OK()
}

func checkFlush(args [][]byte) error {
	if len(args) == 1 || len(args) == 2 && (glob.Fold(args[1]) == "async" || glob.Fold(args[1]) == "sync") {
		return nil
	}
	return reply.ErrSyntax
}

// EXPIRE and its family delete a key if the time has passed. Otherwise they change only values and buckets:
// all other keys expire by their own rate.

// expire returns the handler for a time from now on, or for one at which a key expires.
func expire(unitMs int64, isTime bool) func(c execute.Call, args [][]byte) error {
	return func(c execute.Call, args [][]byte) error {
		when, err := expiryCondition(args[3:])
		if err != nil {
			return err
		}
		n, err := argument.Int(args[2])
		if err != nil {
			return err
		}
		nowMs := cutMs(c.Now())
		if n > math.MaxInt64/unitMs || n < math.MinInt64/unitMs || !isTime && n*unitMs > math.MaxInt64-nowMs {
			return invalidExpireTime(args[0])
		}
		atMs := n * unitMs
		if !isTime {
			atMs += nowMs
		}
		return retimed(c, args[1], limiter.Operation{Verb: limiter.Expire, AtNs: nsOf(atMs), When: when}, execute.Call.Change)
	}
}

// retimed changes a key's expiry and replies whether it did.
func retimed(c execute.Call, name []byte, o limiter.Operation, change func(execute.Call, []byte, store.Step) error) error {
	if err := change(c, name, &o); err != nil {
		return err
	}
	c.Reply().Int(o.Count)
	return nil
}

const latestNs = limiter.NeverNs - 1

// nsOf returns Unix milliseconds in nanoseconds, at most latestNs.
func nsOf(ms int64) int64 {
	switch {
	case ms > latestNs/int64(time.Millisecond):
		return latestNs
	case ms < 0:
		return 0
	}
	return ms * int64(time.Millisecond)
}

func invalidExpireTime(name []byte) error {
	return reply.InvalidExpireTime(glob.Fold(name))
}

func expiryCondition(args [][]byte) (c limiter.ExpiryCondition, err error) {
	for _, arg := range args {
		switch glob.Fold(arg) {
		case "nx":
			c.None = true
		case "xx":
			c.Some = true
		case "gt":
			c.Later = true
		case "lt":
			c.Earlier = true
		default:
			return c, reply.Error("ERR Unsupported option " + resp.Printable(arg))
		}
	}
	switch {
	case c.None && (c.Some || c.Later || c.Earlier):
		return c, reply.Error("ERR NX and XX, GT or LT options at the same time are not compatible")
	case c.Later && c.Earlier:
		return c, reply.Error("ERR GT and LT options at the same time are not compatible")
	}
	return c, nil
}

// persist is PERSIST, which changes only values and buckets: a funnel without expiry would stay full.
func persist(c execute.Call, args [][]byte) error {
	return retimed(c, args[1], limiter.Operation{Verb: limiter.Expire, AtNs: limiter.NeverNs}, execute.Call.ChangeValue)
}
