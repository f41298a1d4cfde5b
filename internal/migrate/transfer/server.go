package transfer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"cellserver/internal/resp"
	"cellserver/internal/store/rdb"
)

const ioTimeout = 10 * time.Second

// replyBounds exceed a page of dumps or names.
func replyBounds() resp.ReplyBounds {
	return resp.ReplyBounds{BulkBytes: 64 << 20, Bytes: 256 << 20, Elements: 1 << 20}
}

// Server is a running cellserver, or a Redis with redis-cell. A cellserver that keeps values dumps a funnel
// in its own format. An earlier one dumps a decimal, and takes a funnel by SET, as a Redis does.
type Server struct {
	name    string // for messages
	signIn  string // how to give the password, for messages
	options *redis.Options
	oneDB   bool // the URL names a database

	client       *redis.Client // on database options.DB
	clock        clock
	reads        reading
	isCellserver bool // this and keepsValues are valid once reads is known
	keepsValues  bool
	isSource     bool // keys are read there
	isTarget     bool // keys are put there
	codec        rdb.Codec
}

// Open returns the server at a URL: redis://user@host:port, rediss:// with TLS, or unix:///path. It connects
// on first use, and the end of ctx closes its connections. Errors say to give the password by signIn.
func Open(ctx context.Context, text, signIn string) (*Server, error) {
	o, err := redis.ParseURL(text)
	if err != nil { // its text may contain the password
		return nil, errors.New("want a URL such as redis://user@host:port, rediss:// for TLS, or unix:///path")
	}
	o.Protocol, o.DisableIdentity, o.ContextTimeoutEnabled = 2, true, true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	o.PoolSize, o.PipelinePoolSize = 1, -1
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout = ioTimeout, ioTimeout, ioTimeout
	dial := replyBounds().Bounded(redis.NewDialer(o))
	o.Dialer = func(dialCtx context.Context, network, addr string) (net.Conn, error) {
		nc, err := dial(dialCtx, network, addr)
		if err == nil {
			context.AfterFunc(ctx, func() { _ = nc.Close() }) // else a silent server would delay the end by ioTimeout
		}
		return nc, err
	}
	s := &Server{name: o.Addr, signIn: signIn, options: o, codec: rdb.NewCodec()}
	if u, err := url.Parse(text); err == nil {
		s.oneDB = u.Query().Has("db") || o.Network == "tcp" && strings.Trim(u.Path, "/") != ""
	}
	s.client = redis.NewClient(o)
	return s, nil
}

// NamesDB returns the URL's database; false if it names none.
func (s *Server) NamesDB() (db int, ok bool) { return s.options.DB, s.oneDB }

// Close closes the connection; pending replies fail.
func (s *Server) Close() { _ = s.client.Close() }

// Do sends commands at once and returns their replies, nil for null, or the first error.
func (s *Server) Do(ctx context.Context, commands ...[]any) (replies []any, err error) {
	sent, err := s.pipelined(ctx, func(p redis.Pipeliner) {
		for _, words := range commands {
			p.Do(ctx, words...)
		}
	})
	if err != nil {
		return nil, err
	}
	for _, c := range sent {
		reply, err := c.(*redis.Cmd).Result()
		if isRefused(err) {
			return nil, s.explain(err)
		}
		replies = append(replies, reply)
	}
	return replies, nil
}

// IsSource tells that keys are read there, for messages about rights.
func (s *Server) IsSource() { s.isSource = true }

// Name is the server's address, for messages.
func (s *Server) Name() string { return s.name }

// use switches to a database.
func (s *Server) use(db int) {
	if db == s.options.DB {
		return
	}
	s.Close()
	o := *s.options
	o.DB = db
	s.options, s.client = &o, redis.NewClient(&o)
}

const onlyOurs = "it must be a cellserver that knows the command"

// explain adds advice to an error.
func (s *Server) explain(err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	text := err.Error()
	tooFew := "it has no such database; name another one"
	if s.isTarget {
		tooFew = "start the target with as many --databases as the source has"
	}
	rights := "give a user in the URL who may"
	switch {
	case s.isSource:
		rights = "the user needs +scan +dump +pexpiretime +info +select +time +multi +exec, of a Redis +scan +get +getrange +pttl +info " +
			"+select +time +multi +exec, and the keys"
	case s.isTarget:
		rights = "the user needs +restore +cl.reset +dump +pexpiretime +info +select +time +multi +exec, of a Redis +set +get +getrange " +
			"+pttl +info +select +time +multi +exec, and the keys"
	}
	for _, known := range []struct{ part, hint string }{
		{"NOAUTH", "give its password by " + s.signIn},
		{"WRONGPASS", "check the user in the URL and the password of " + s.signIn},
		{"NOPERM", rights},
		{"READONLY", "it is a replica; give the primary's address"},
		{"DB index is out of range", tooFew},
		{"connection refused", "check the address, and that the server runs"},
		{"unknown command 'CL.", onlyOurs},
		{"unknown command `CL.", onlyOurs}, // Redis before 7
		{"unknown command", onlyOurs + ", or a Redis"},
		{"LOADING", "wait until it has loaded"},
		{"MISCONF", "see its log"},
		{"OOM", "give it more memory (maxmemory)"},
		{"DENIED", "it is in protected mode; set a password there"},
		{"the server announces", "it is no Redis, or has long strings of other programs, for which it takes " +
			"GETRANGE: give a user in the URL who may use that"},
		{"not a Redis reply from the server: HTTP/", "it speaks HTTP: give the address of --addr, not of --http-addr or --metrics-addr"},
		{"i/o timeout", "it does not answer"},
		{"context deadline exceeded", "it does not answer, or has no TLS; use redis:// without"},
		{"first record does not look like a TLS handshake", "use redis://, the port has no TLS"},
	} {
		if strings.Contains(text, known.part) {
			return fmt.Errorf("%s: %w", s.name, resp.Advised(err, known.hint))
		}
	}
	return fmt.Errorf("%s: %w", s.name, resp.OneLine(err))
}

// isReply reports whether an error is a server's reply.
func isReply(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply)
}

// isAboutKey reports whether a server has refused one key; other errors would meet every key.
func isAboutKey(err error) bool {
	if !isReply(err) {
		return false
	}
	for _, general := range []string{
		"NOAUTH", "NOPERM", "READONLY", "LOADING", "MISCONF", "OOM", "MASTERDOWN", "MOVED", "CLUSTERDOWN", "DENIED", "NOREPLICAS",
		"ERR unknown command", "ERR DB index",
	} {
		if strings.HasPrefix(err.Error(), general) {
			return false
		}
	}
	return true
}

// databases returns the databases with keys and the total number of keys.
func (s *Server) databases(ctx context.Context) (numbers []int, keys int64, err error) {
	info, err := s.client.Info(ctx, "keyspace").Result()
	if err != nil {
		return nil, 0, s.explain(err)
	}
	for line := range strings.Lines(info) {
		name, fields, _ := strings.Cut(strings.TrimSpace(line), ":")
		db, err := strconv.ParseUint(strings.TrimPrefix(name, "db"), 10, 16)
		if err != nil || !strings.HasPrefix(name, "db") {
			continue
		}
		numbers = append(numbers, int(db))
		first, _, _ := strings.Cut(strings.TrimPrefix(fields, "keys="), ",")
		if n, err := strconv.ParseInt(first, 10, 64); err == nil {
			keys += n
		}
	}
	slices.Sort(numbers)
	return slices.Compact(numbers), keys, nil
}

// runID identifies a server process, whose cursors are valid only there.
func (s *Server) runID(ctx context.Context) (string, error) {
	info, err := s.client.Info(ctx, "server").Result()
	if err != nil {
		return "", s.explain(err)
	}
	for line := range strings.Lines(info) {
		if id, ok := strings.CutPrefix(strings.TrimSpace(line), "run_id:"); ok {
			return id, nil
		}
	}
	return "", nil
}

// clock is a measurement of a server's clock.
type clock struct {
	serverNs int64
	at       time.Time // local; only its monotonic reading counts
	atMostNs int64     // half a round trip, the most it may be off
}

const (
	clockTries   = 7
	clockRenewal = 10 * time.Second // clocks may be adjusted meanwhile
)

func (c clock) nowNs() int64 { return c.serverNs + int64(time.Since(c.at)) }

// NowNs returns the server's time.
func (s *Server) NowNs(ctx context.Context) (int64, error) {
	err := s.measureClock(ctx)
	return s.clock.nowNs(), err
}

// measureClock takes the fastest of a few round trips and assumes the server's reading in its middle. Within
// MULTI a cellserver tells the clock that funnels drain by, which does not follow changes of the system's.
func (s *Server) measureClock(ctx context.Context) error {
	if !s.clock.at.IsZero() && time.Since(s.clock.at) < clockRenewal {
		return nil
	}
	var best clock
	for i := range clockTries {
		var now *redis.TimeCmd
		began := time.Now()
		_, err := s.client.TxPipelined(ctx, func(p redis.Pipeliner) error {
			now = p.Time(ctx)
			return nil
		})
		half := time.Since(began) / 2
		if err != nil {
			return s.explain(err)
		}
		if i > 0 && (i == 1 || int64(half) < best.atMostNs) { // the first may have connected
			best = clock{now.Val().UnixNano(), began.Add(half), int64(half)}
		}
	}
	s.clock = best
	return nil
}

// shiftNs returns how much later a TAT of s is by to's clock, or 0 within the measurement's error.
func (s *Server) shiftNs(ctx context.Context, to *Server) (int64, error) {
	for _, each := range []*Server{s, to} {
		if err := each.measureClock(ctx); err != nil {
			return 0, err
		}
	}
	shift := to.clock.nowNs() - s.clock.nowNs()
	if max(shift, -shift) <= s.clock.atMostNs+to.clock.atMostNs {
		return 0, nil
	}
	return shift, nil
}
