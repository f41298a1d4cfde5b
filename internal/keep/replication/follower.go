package replication

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"cellserver/internal/keep/changes"
	"cellserver/internal/shard"
	"cellserver/internal/store"
	"cellserver/internal/store/replicas"
)

type Dial func(ctx context.Context, to replicas.Address) (Conn, error)

type Conn interface {
	// Do sends a command and returns its reply, or the error that it is.
	Do(ctx context.Context, args ...any) (any, error)
	Close() error
}

const (
	// These are for six round trips of replicas.MostRoundTrip at most.
	dialTime   = 4 * time.Second
	loginTime  = 9 * time.Second
	answerTime = 5 * time.Second // of a leader
	leastRetry = 50 * time.Millisecond
	mostRetry  = time.Second
	// emptyRetry is for a leader that is not followed.
	emptyRetry = 5 * time.Second
)

func (n *Node) follow(ctx context.Context, leader replicas.Address) {
	n.mu.Lock()
	n.leader, n.link, n.downNs = leader, replicas.LinkConnect, n.config.Clock.Now()
	n.heard, n.trips, n.differing = time.Time{}, trips{}, nil
	n.unlock()
	var second sync.WaitGroup
	second.Go(func() { n.standBy(ctx, leader) })
	defer second.Wait()
	said, circle := "", time.Time{}
	for retry := leastRetry; ctx.Err() == nil; retry = min(2*retry, mostRetry) {
		wasUp, err := n.followOnce(ctx, leader)
		if ctx.Err() != nil {
			break
		}
		n.linkDown(err)
		if text := err.Error(); wasUp || text != said {
			level := slog.LevelWarn
			if strings.HasPrefix(text, "NOTLEADER ") { // it may be about to lead
				level = slog.LevelInfo
			}
			n.config.Log.Log(ctx, level, "the link to the leader is down", "leader", leader.String(), "error", err)
			said = text
		}
		if n.endsCircle(ctx, &circle, leader, err) {
			break
		}
		switch {
		case wasUp:
			retry = leastRetry
		case errors.Is(err, errEmptyLeader): // it begins a full sync each time
			retry = emptyRetry
		}
		pause(ctx, retry)
	}
	n.linkDown(nil)
}

func (n *Node) linkDown(err error) {
	n.mu.Lock()
	defer n.unlock()
	if n.link == replicas.LinkConnected || n.downNs == 0 {
		n.downNs = n.config.Clock.Now()
	}
	n.link, n.linkErr, n.syncBytes = replicas.LinkConnect, err, 0
}

// followOnce follows the leader by one connection, and reports whether it was in step.
func (n *Node) followOnce(ctx context.Context, leader replicas.Address) (wasUp bool, err error) {
	n.locked(func() { n.link = replicas.LinkConnecting })
	ctx, end := context.WithCancel(ctx)
	defer end()
	number := 0
	n.locked(func() { number, n.attempts.n, n.attempts.end = n.attempts.n+1, n.attempts.n+1, end })
	c, err := n.connect(ctx, leader)
	if err != nil {
		return false, err
	}
	defer c.Close() //nolint:errcheck // nothing was written
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	f, err := n.start(ctx, c, false)
	n.endAttempt(number, err)
	if err != nil {
		return false, err
	}
	for ctx.Err() == nil { // which the connection does not look at
		if err := f.next(ctx); err != nil {
			if errors.Is(err, errFrame) || errors.Is(err, changes.ErrFormat) {
				// It would be read again: the next connection takes all states.
				n.locked(func() { n.history, n.parent, n.branch = newHistory(), "", -1 })
			}
			return f.beside == nil, err
		}
	}
	return f.beside == nil, ctx.Err()
}

// connect connects and says where this server's clients are.
func (n *Node) connect(ctx context.Context, to replicas.Address) (Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, loginTime)
	defer cancel()
	c, err := n.config.Dial(ctx, to)
	if err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	if err := n.introduce(ctx, c); err != nil {
		_ = c.Close() // nothing was written
		return nil, err
	}
	return c, nil
}

func (n *Node) introduce(ctx context.Context, c Conn) error {
	a := n.config.Announce
	args := []any{"REPLCONF", "listening-port", a.Port}
	if a.Host != "" {
		args = append(args, "ip-address", a.Host)
	}
	_, err := c.Do(ctx, args...)
	return err
}

type leaderLink struct {
	node     *Node
	conn     Conn
	start    replicas.Start
	beside   *shard.Store // of a full sync under way, or nil
	history  string       // of the frames; "" for that of the start
	received int64        // offset of the frames so far
	texts    [][]byte     // definitions of the full sync or the round
	records  [][]byte     // of the round
	round    [][]byte     // its frames
	together changes.Together
}

// mayAcknowledge reports whether the leader may count on this replica: a start would find the states.
func (f *leaderLink) mayAcknowledge() bool {
	n := f.node
	return f.beside == nil && read(n, func() bool { return n.statusOfKept(n.missing, n.replacing) != replicas.KeptLater })
}

func (f *leaderLink) next(ctx context.Context) error {
	applied, acknowledges := int64(-1), f.mayAcknowledge()
	if acknowledges {
		applied = f.received
	}
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	f.node.setAsked(true)
	reply, err := f.conn.Do(ctx, "CL.SYNC", "NEXT", applied)
	f.node.setAsked(false)
	if err != nil {
		return err
	}
	if err := f.takeReply(reply); err != nil {
		return err
	}
	if n := f.node; acknowledges { // only then may the leader hand over
		n.locked(func() { n.link, n.downNs, n.syncBytes = replicas.LinkConnected, 0, 0 })
	}
	return nil
}

func (f *leaderLink) takeReply(reply any) error {
	parts, _ := reply.([]any)
	if len(parts) != 2 {
		return errFrame
	}
	clockNs, isClock := parts[0].(int64)
	frames, isText := parts[1].(string)
	if !isClock || !isText {
		return errFrame
	}
	return f.take(clockNs, []byte(frames))
}

func (f *leaderLink) take(clockNs int64, frames []byte) error {
	n := f.node
	n.config.Clock.SetTo(clockNs)
	n.mu.Lock()
	n.lastIONs, n.latestNs, n.heard = n.config.Clock.Now(), max(n.latestNs, clockNs), time.Now()
	if f.beside != nil {
		n.syncBytes += int64(len(frames))
	} else if len(frames) < takeBytes/2 { // else more waits there
		n.lastFullNs = n.lastIONs
	}
	n.unlock()
	for len(frames) > 0 {
		sent, raw, rest, err := readFrame(frames)
		if err != nil {
			return err
		}
		if err := f.frame(&sent, raw); err != nil {
			return err
		}
		frames = rest
	}
	return nil
}

func (f *leaderLink) frame(sent *frame, raw []byte) error {
	if sent.flags&flagState == 0 {
		f.received += int64(len(raw))
	}
	switch {
	case sent.flags&flagComplete != 0:
		return f.complete()
	case sent.flags&flagDefinitions != 0:
		f.texts = append(f.texts, sent.content)
	case f.beside != nil:
		if err := f.apply(f.beside, sent.clockNs, sent.content); err != nil {
			return err
		}
	default:
		f.records = append(f.records, sent.content)
	}
	if f.beside != nil {
		return nil
	}
	if f.round = append(f.round, raw); sent.flags&flagEnd == 0 {
		return nil
	}
	return f.endRound(sent.clockNs)
}

// endRound applies a whole round. During a planned change it may have come by the other connection before.
func (f *leaderLink) endRound(clockNs int64) error {
	n := f.node
	n.applying.Lock()
	defer n.applying.Unlock()
	if due, err := f.isDue(); !due {
		f.texts, f.records, f.round = nil, nil, nil
		return err
	}
	for _, records := range f.records {
		if err := f.apply(n.config.Store, clockNs, records); err != nil {
			return err
		}
	}
	f.define()
	n.mu.Lock()
	defer n.unlock()
	n.backlog.add(f.round)
	f.records, f.round = nil, nil
	return nil
}

func (f *leaderLink) apply(s *shard.Store, nowNs int64, records []byte) error {
	return f.together.Read(records, func(some []store.Change) { s.Restore(nowNs, 0, 1, some) })
}

// isDue reports whether a round is the next one; one that is not has been applied, or does not follow.
func (f *leaderLink) isDue() (bool, error) {
	begin := f.received
	for _, raw := range f.round {
		begin -= int64(len(raw))
	}
	f.node.mu.Lock()
	defer f.node.unlock()
	at := f.node.backlog.end
	if f.history != "" && f.history != f.node.history || begin > at || begin < at && f.received > at {
		return false, errFrame
	}
	return begin == at, nil
}

// define applies definitions. A full disk is no reason to follow no more: they hold in memory.
func (f *leaderLink) define() {
	for _, text := range f.texts {
		if err := f.node.config.Definitions.Apply(text); err != nil {
			f.node.unkept.Store(true)
			f.node.config.Log.Error("the leader's definitions of limits are not kept here", "error", err)
		}
	}
	f.texts = nil
}

// complete swaps in the states of a full sync.
func (f *leaderLink) complete() error {
	if f.beside == nil {
		return errFrame
	}
	n := f.node
	n.applying.Lock()
	defer n.applying.Unlock()
	n.unkept.Store(false)
	n.replace(f)
	f.define()
	n.mu.Lock()
	defer n.unlock()
	n.adoptLocked(&f.start)
	n.backlog.reset(f.received)
	n.complete, n.linkErr = true, nil
	n.counts.FullSyncsTaken++
	n.config.Log.Info("this replica has taken all states", "leader", n.leader.String(), "offset", f.received)
	return nil
}

type Login struct {
	User     string
	Password func() (string, error)
	TLS      *tls.Config // nil for none
}

// ClientName is the name of replicas' connections.
const ClientName = "cellserver-replica"

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

type client struct {
	all *redis.Client
	one *redis.Conn
}

func (c *client) Do(ctx context.Context, args ...any) (any, error) {
	cmd := redis.NewCmd(ctx, args...)
	_ = c.one.Process(ctx, cmd) // its error is the command's
	return cmd.Result()
}

// Close implements Conn. It closes only the pool; closing the Conn beside Process would race.
func (c *client) Close() error { return c.all.Close() }
