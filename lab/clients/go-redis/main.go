// Command go-redis uses the server as users of go-redis do.
package main

import (
	"context"
	"crypto/x509"
	"fmt"
	"os"

	"github.com/redis/go-redis/v9"

	"cellserver/lab/clients/internal/expect"
	"cellserver/lab/clients/internal/report"
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "go-redis:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	r := report.New(os.Stdin, os.Stdout)
	r.Version(report.ModuleVersion("github.com/redis/go-redis/v9"))
	options, err := redis.ParseURL(os.Getenv("REDIS_URL"))
	if err != nil {
		return err
	}
	client := redis.NewClient(options)
	defer func() { _ = client.Close() }()

	r.Check("url", func() error { return client.Ping(ctx).Err() })
	r.Check("tls", func() error { return overTLS(ctx) })
	r.Check("throttle", func() error { return throttle(ctx, client, "throttle") })
	r.Check("pipeline", func() error { return pipeline(ctx, client) })
	r.Check("transaction", func() error { return transaction(ctx, client) })
	r.Check("watch", func() error { return watch(ctx, client) })
	r.Check("evalsha", func() error { return evalsha(ctx, client) })
	r.Check("eval", func() error {
		return expect.Fresh(client.Eval(ctx, expect.Script, []string{"eval"}, 15, 30, 60).Int64Slice())
	})
	r.Check("pool", func() error { return pool(ctx) })
	r.Check("wrong password", func() error { return wrongPassword(ctx) })
	r.Check("database", func() error {
		if err := throttle(ctx, client, "database"); err != nil {
			return err
		}
		return throttleAt(ctx, os.Getenv("REDIS_DB3_URL"), "database") // where the key of the same name is separate
	})
	r.Check("cache", func() error { return cache(ctx, client) })
	r.Check("increx", func() error { return increx(ctx, client) })
	r.Check("reconnect", func() error {
		if err := r.Restart(); err != nil {
			return err
		}
		return throttle(ctx, client, "reconnect")
	})
	return r.Err()
}

func throttle(ctx context.Context, client *redis.Client, key string) error {
	return expect.Fresh(client.Do(ctx, "CL.THROTTLE", key, 15, 30, 60).Int64Slice())
}

func throttleAt(ctx context.Context, url, key string) error {
	options, err := redis.ParseURL(url)
	if err != nil {
		return err
	}
	client := redis.NewClient(options)
	defer func() { _ = client.Close() }()
	return throttle(ctx, client, key)
}

func overTLS(ctx context.Context) error {
	untrusted := throttleAt(ctx, os.Getenv("REDIS_TLS_URL"), "tls") // only with the system's authorities
	if err := expect.Refused(untrusted, "certificate signed by unknown authority"); err != nil {
		return err
	}
	options, err := redis.ParseURL(os.Getenv("REDIS_TLS_URL"))
	if err != nil {
		return err
	}
	pem, err := os.ReadFile(os.Getenv("REDIS_CA"))
	if err != nil {
		return err
	}
	options.TLSConfig.RootCAs = x509.NewCertPool()
	options.TLSConfig.RootCAs.AppendCertsFromPEM(pem)
	client := redis.NewClient(options)
	defer func() { _ = client.Close() }()
	return throttle(ctx, client, "tls")
}

func pipeline(ctx context.Context, client *redis.Client) error {
	replies := make([]*redis.Cmd, 100)
	_, err := client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i := range replies {
			replies[i] = p.Do(ctx, "CL.THROTTLE", "pipeline", 49, 1, expect.DaySeconds)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return expect.Pipelined(func(i int) ([]int64, error) { return replies[i].Int64Slice() })
}

func transaction(ctx context.Context, client *redis.Client) error {
	replies := make([]*redis.Cmd, 3)
	_, err := client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		for i := range replies {
			replies[i] = p.Do(ctx, "CL.THROTTLE", "transaction", 1, 1, expect.DaySeconds)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return expect.Transacted(func(i int) ([]int64, error) { return replies[i].Int64Slice() })
}

// watch expects a transaction to abort because another connection wrote its key, and then one to succeed.
func watch(ctx context.Context, client *redis.Client) error {
	attempt := func(disturb func() error) error {
		return client.Watch(ctx, func(tx *redis.Tx) error {
			if err := disturb(); err != nil {
				return err
			}
			var reply *redis.Cmd
			_, err := tx.TxPipelined(ctx, func(p redis.Pipeliner) error {
				reply = p.Do(ctx, "CL.THROTTLE", "watch", 15, 1, expect.DaySeconds)
				return nil
			})
			if err != nil {
				return err
			}
			values, err := reply.Int64Slice()
			return expect.Reply(values, err, 0, 16, 14)
		}, "watch")
	}
	disturbed := attempt(func() error { return client.Do(ctx, "CL.THROTTLE", "watch", 15, 1, expect.DaySeconds).Err() })
	if err := expect.Refused(disturbed, redis.TxFailedErr.Error()); err != nil {
		return err
	}
	return attempt(func() error { return nil })
}

// evalsha sends EVALSHA, and EVAL if the server does not have the script, as Run does.
func evalsha(ctx context.Context, client *redis.Client) error {
	for _, key := range []string{"evalsha:unknown", "evalsha:known"} {
		reply, err := redis.NewScript(expect.Script).Run(ctx, client, []string{key}, 15, 30, 60).Int64Slice()
		if err := expect.Fresh(reply, err); err != nil {
			return err
		}
	}
	return nil
}

func pool(ctx context.Context) error {
	options, err := redis.ParseURL(os.Getenv("REDIS_URL"))
	if err != nil {
		return err
	}
	options.PoolSize = 8
	client := redis.NewClient(options)
	defer func() { _ = client.Close() }()
	return expect.Pooled(func(call func([]int64, error) error) error {
		for range 100 {
			if err := call(client.Do(ctx, "CL.THROTTLE", "pool", 99, 1, expect.DaySeconds).Int64Slice()); err != nil {
				return err
			}
		}
		return nil
	})
}

func wrongPassword(ctx context.Context) error {
	options, err := redis.ParseURL(os.Getenv("REDIS_URL"))
	if err != nil {
		return err
	}
	options.Password = "not it"
	client := redis.NewClient(options)
	defer func() { _ = client.Close() }()
	return expect.Refused(client.Ping(ctx).Err(), "WRONGPASS")
}

// cache expects reads of a client with a cache to return what another writes. go-redis turns the cache off,
// with a line in the log, if tracking is refused.
func cache(ctx context.Context, other *redis.Client) error {
	options, err := redis.ParseURL(os.Getenv("REDIS_URL"))
	if err != nil {
		return err
	}
	options.ClientSideCacheConfig = &redis.ClientSideCacheConfig{}
	client := redis.NewClient(options)
	defer func() { _ = client.Close() }()
	incr := func() (int64, error) { return other.Incr(ctx, "cache").Result() }
	read := func() (int64, error) {
		other.Ping(ctx) // gives Redis's messages time
		return client.Get(ctx, "cache").Int64()
	}
	return expect.Follows(incr, read, "ClientSideCacheConfig")
}
