// Command go-rueidis uses the server as users of rueidis do.
package main

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"cellserver/lab/clients/internal/expect"
	"cellserver/lab/clients/internal/report"
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "go-rueidis:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	r := report.New(os.Stdin, os.Stdout)
	r.Version(report.ModuleVersion("github.com/redis/rueidis"))
	options, err := rueidis.ParseURL(os.Getenv("REDIS_URL"))
	if err != nil {
		return err
	}
	client, err := rueidis.NewClient(options)
	if err != nil {
		return err
	}
	defer client.Close()

	r.Check("url", func() error { return client.Do(ctx, client.B().Ping().Build()).Error() })
	r.Check("tls", func() error { return overTLS(ctx) })
	r.Check("throttle", func() error { return fresh(ctx, client, "throttle") })
	r.Check("pipeline", func() error { return pipeline(ctx, client) })
	r.Check("transaction", func() error {
		return client.Dedicated(func(c rueidis.DedicatedClient) error { return transaction(ctx, c) })
	})
	r.Check("watch", func() error {
		return client.Dedicated(func(c rueidis.DedicatedClient) error { return watch(ctx, client, c) })
	})
	r.Check("evalsha", func() error { return evalsha(ctx, client) })
	r.Check("eval", func() error {
		eval := client.B().Eval().Script(expect.Script).Numkeys(1).Key("eval").Arg("15", "30", "60").Build()
		return expect.Fresh(client.Do(ctx, eval).AsIntSlice())
	})
	r.Check("pool", func() error { return pool(ctx, client) })
	r.Check("wrong password", wrongPassword)
	r.Check("database", func() error {
		if err := fresh(ctx, client, "database"); err != nil {
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
		return reconnect(ctx, client)
	})
	return r.Err()
}

// throttle builds a command that rueidis's builder does not have.
func throttle(b rueidis.Builder, key string, limit ...string) rueidis.Completed {
	return b.Arbitrary("CL.THROTTLE").Keys(key).Args(limit...).Build()
}

func fresh(ctx context.Context, client rueidis.Client, key string) error {
	return expect.Fresh(client.Do(ctx, throttle(client.B(), key, "15", "30", "60")).AsIntSlice())
}

func throttleAt(ctx context.Context, url, key string) error {
	options, err := rueidis.ParseURL(url)
	if err != nil {
		return err
	}
	client, err := rueidis.NewClient(options)
	if err != nil {
		return err
	}
	defer client.Close()
	return fresh(ctx, client, key)
}

func overTLS(ctx context.Context) error {
	untrusted := throttleAt(ctx, os.Getenv("REDIS_TLS_URL"), "tls") // only with the system's authorities
	if err := expect.Refused(untrusted, "certificate signed by unknown authority"); err != nil {
		return err
	}
	options, err := rueidis.ParseURL(os.Getenv("REDIS_TLS_URL"))
	if err != nil {
		return err
	}
	pem, err := os.ReadFile(os.Getenv("REDIS_CA"))
	if err != nil {
		return err
	}
	options.TLSConfig.RootCAs = x509.NewCertPool()
	options.TLSConfig.RootCAs.AppendCertsFromPEM(pem)
	client, err := rueidis.NewClient(options)
	if err != nil {
		return err
	}
	defer client.Close()
	return fresh(ctx, client, "tls")
}

// day is expect.DaySeconds as an argument.
const day = "86400"

func pipeline(ctx context.Context, client rueidis.Client) error {
	commands := make(rueidis.Commands, 100)
	for i := range commands {
		commands[i] = throttle(client.B(), "pipeline", "49", "1", day)
	}
	replies := client.DoMulti(ctx, commands...)
	return expect.Pipelined(func(i int) ([]int64, error) { return replies[i].AsIntSlice() })
}

func transaction(ctx context.Context, c rueidis.DedicatedClient) error {
	commands := rueidis.Commands{c.B().Multi().Build()}
	for range 3 {
		commands = append(commands, throttle(c.B(), "transaction", "1", "1", day))
	}
	replies := c.DoMulti(ctx, append(commands, c.B().Exec().Build())...)
	results, err := replies[len(replies)-1].ToArray()
	if err != nil {
		return err
	}
	return expect.Transacted(func(i int) ([]int64, error) { return results[i].AsIntSlice() })
}

// watch expects a transaction to abort because another connection wrote its key, and then one to succeed.
func watch(ctx context.Context, other rueidis.Client, c rueidis.DedicatedClient) error {
	attempt := func(disturb bool) ([]rueidis.RedisMessage, error) {
		if err := c.Do(ctx, c.B().Watch().Key("watch").Build()).Error(); err != nil {
			return nil, err
		}
		if disturb {
			if err := other.Do(ctx, throttle(other.B(), "watch", "15", "1", day)).Error(); err != nil {
				return nil, err
			}
		}
		replies := c.DoMulti(ctx, c.B().Multi().Build(), throttle(c.B(), "watch", "15", "1", day), c.B().Exec().Build())
		return replies[2].ToArray()
	}
	if results, err := attempt(true); !rueidis.IsRedisNil(err) {
		return fmt.Errorf("EXEC gave %v, %w, though the key was written", results, err)
	}
	results, err := attempt(false)
	if err != nil {
		return err
	}
	values, err := results[0].AsIntSlice()
	return expect.Reply(values, err, 0, 16, 14)
}

// evalsha sends EVALSHA, and EVAL if the server does not have the script, as Exec does.
func evalsha(ctx context.Context, client rueidis.Client) error {
	for _, key := range []string{"evalsha:unknown", "evalsha:known"} {
		reply, err := rueidis.NewLuaScript(expect.Script).Exec(ctx, client, []string{key}, []string{"15", "30", "60"}).AsIntSlice()
		if err := expect.Fresh(reply, err); err != nil {
			return err
		}
	}
	return nil
}

// pool has each worker take its own connection from the pool, because rueidis would otherwise share one.
func pool(ctx context.Context, client rueidis.Client) error {
	return expect.Pooled(func(call func([]int64, error) error) error {
		return client.Dedicated(func(c rueidis.DedicatedClient) error {
			for range 100 {
				if err := call(c.Do(ctx, throttle(c.B(), "pool", "99", "1", day)).AsIntSlice()); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// reconnect gives up a call that was sent on the lost connection: rueidis repeats only commands that read.
func reconnect(ctx context.Context, client rueidis.Client) (err error) {
	for i := range 3 {
		if err = fresh(ctx, client, "reconnect:"+strconv.Itoa(i)); err == nil {
			return nil
		}
	}
	return err
}

func wrongPassword() error {
	options, err := rueidis.ParseURL(os.Getenv("REDIS_URL"))
	if err != nil {
		return err
	}
	options.Password = "not it"
	client, err := rueidis.NewClient(options)
	if err == nil {
		client.Close()
	}
	return expect.Refused(err, "WRONGPASS")
}

// cache expects DoCache to return what another client writes, or an error; and with DisableCache no error.
func cache(ctx context.Context, client rueidis.Client) error {
	options, err := rueidis.ParseURL(os.Getenv("REDIS_URL"))
	if err != nil {
		return err
	}
	options.DisableCache = true
	other, err := rueidis.NewClient(options)
	if err != nil {
		return err
	}
	defer other.Close()
	incr := func() (int64, error) { return other.Do(ctx, other.B().Incr().Key("cache").Build()).AsInt64() }
	read := func(c rueidis.Client) func() (int64, error) {
		return func() (int64, error) {
			other.Do(ctx, other.B().Ping().Build()) // gives Redis's messages time
			return c.DoCache(ctx, c.B().Get().Key("cache").Cache(), time.Hour).AsInt64()
		}
	}
	return errors.Join(expect.Follows(incr, read(client), "DisableCache"), expect.Follows(incr, read(other), "no error"))
}
