package replication

import (
	"context"
	"crypto/tls"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"cellserver/internal/store/replicas"
)

// Login is how a server logs in to another one.
type Login struct {
	User     string
	Password func() (string, error)
	TLS      *tls.Config // nil for none
}

// ClientName is the name of replicas' connections.
const ClientName = "cellserver-replica"

// Dialer returns a Dial that logs in.
func Dialer(l Login) Dial {
	logging.Disable() // go-redis writes a line to stderr for each connection that fails; ours say it once
	return func(ctx context.Context, to replicas.Address) (Conn, error) {
		password, err := l.Password()
		if err != nil {
			return nil, err
		}
		c := redis.NewClient(&redis.Options{
			Addr: to.String(), Username: l.User, Password: password, TLSConfig: l.TLS, ClientName: ClientName,
			Protocol: 2, DisableIdentity: true, PoolSize: 1, MaxRetries: -1, ContextTimeoutEnabled: true,
			DialTimeout: dialTime, ReadTimeout: answerTime, WriteTimeout: answerTime, PoolTimeout: answerTime,
			DialerRetries: 1,
		})
		defer context.AfterFunc(ctx, func() { _ = c.Close() })() // a read does not end with its context
		one := c.Conn()
		if err := one.Ping(ctx).Err(); err != nil && !redis.HasErrorPrefix(err, "LOADING") { // which it says by itself
			_ = c.Close() // nothing was written
			return nil, err
		}
		return &client{c, one}, nil
	}
}

// client is one connection of go-redis.
type client struct {
	all *redis.Client
	one *redis.Conn
}

// Do implements Conn.
func (c *client) Do(ctx context.Context, args ...any) (any, error) {
	cmd := redis.NewCmd(ctx, args...)
	_ = c.one.Process(ctx, cmd) // its error is the command's
	return cmd.Result()
}

// Close implements Conn. It leaves the Conn open, whose Close must not run beside a Process.
func (c *client) Close() error { return c.all.Close() }
