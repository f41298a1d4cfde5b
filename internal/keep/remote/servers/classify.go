package servers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/redis/go-redis/v9"

	"cellserver/internal/resp"
	"cellserver/internal/store"
)

func isReply(err error) bool {
	_, ok := errors.AsType[redis.Error](err)
	return ok
}

// unanswered classifies a connection's error for a call, written to it or not.
func unanswered(s *Server, err error, written bool) *Failed {
	f := &Failed{Reason: Network, Text: s.Addr + ": "}
	if written {
		f.Executed = Maybe
	}
	var timeout net.Error
	switch {
	case err == nil:
		f.Text += "no answer"
	case isReply(err): // to the handshake, such as AUTH
		return refused(s, err)
	case errors.Is(err, redis.ErrPoolTimeout), errors.Is(err, redis.ErrPoolExhausted):
		f.Reason = QueueFull
		f.Text += "all connections are in use"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled), errors.Is(err, os.ErrDeadlineExceeded),
		errors.As(err, &timeout) && timeout.Timeout():
		f.Reason = Timeout
		f.Text += "no answer in time"
		if !written {
			f.Text += ", not even to a new connection"
		}
	default:
		f.Text += resp.ErrorLine(cause(s, err))
	}
	return f
}

// cause leaves out our own and known addresses.
func cause(s *Server, err error) string {
	op, ok := errors.AsType[*net.OpError](err)
	if !ok || !strings.HasPrefix(err.Error(), op.Op+" ") || op.Op == "dial" && (op.Addr == nil || op.Addr.String() != s.Addr) {
		return err.Error()
	}
	return op.Err.Error()
}

// kinds classifies an error reply by its first words. With No, Redis replies so before a script runs, or at
// its first write: it cannot refuse later writes for these reasons.
func kinds(text string) (store.Reason, Executed) {
	for _, k := range [...]struct {
		prefix string
		reason store.Reason
	}{
		{"MOVED ", Cluster}, {"ASK ", Cluster}, {"TRYAGAIN", Cluster}, {"CLUSTERDOWN", Cluster}, {"CROSSSLOT", Refused},
		{"LOADING", Loading}, {"BUSY", Loading},
		{"READONLY", ReadOnly}, {"MASTERDOWN", ReadOnly},
		{"OOM", OutOfMemory}, {"WRONGTYPE", WrongType},
		{"NOSCRIPT", NoScripting}, {"NOPERM this user has no permissions to run the 'eval", NoScripting},
		{"NOPERM this user has no permissions to run the 'script", NoScripting}, {"ERR unknown command", NoScripting},
		{"NOAUTH", Auth}, {"WRONGPASS", Auth}, {"NOPERM", Auth}, {"ERR invalid password", Auth},
		{"ERR Client sent AUTH", Auth}, {"ERR AUTH ", Auth},
		{"NOREPLICAS", Refused}, {"MISCONF", Refused}, {"ERR max number of clients", Refused},
		{"ERR DB index", Refused}, {"DENIED", Refused},
	} {
		if strings.HasPrefix(text, k.prefix) {
			return k.reason, No
		}
	}
	if strings.HasPrefix(text, "ERR The user executing the script can't ") { // perhaps after a write
		return Auth, Maybe
	}
	return Refused, Maybe
}

// refused classifies a server's error reply.
func refused(s *Server, err error) *Failed {
	text := resp.ErrorLine(err.Error())
	// Redis 6 and older wrap the error of a script's command.
	if i := strings.Index(text, ": -"); i >= 0 && strings.HasPrefix(text, "ERR Error running script") {
		text = text[i+len(": -"):]
	}
	f := &Failed{}
	f.Reason, f.Executed = kinds(text)
	if addr, ok := redis.IsMovedError(err); ok {
		f.Redirect = &Redirect{Addr: s.resolve(addr)}
	} else if addr, ok := redis.IsAskError(err); ok {
		f.Redirect = &Redirect{Addr: s.resolve(addr), Asking: true}
	}
	f.Text = s.Addr + ": " + text
	return f
}

// resolve completes an address without a host by the server's own.
func (s *Server) resolve(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil || host != "" {
		return addr
	}
	own, _, err := net.SplitHostPort(s.Addr)
	if err != nil {
		return addr
	}
	return net.JoinHostPort(own, port)
}

func tooFew(s *Server, have int64, want int, counted bool) *Failed {
	text := fmt.Sprintf("%s: only %d of %d replicas have it in time", s.Addr, have, want)
	if !counted {
		text = s.Addr + ": does not say in time whether its replicas have it"
	}
	return &Failed{Reason: Replicas, Executed: Maybe, Text: text}
}
