package keys

import (
	"bytes"
	"math"
	"strconv"

	"cellserver/internal/limiter"
	"cellserver/internal/redis/execute"
	"cellserver/internal/redis/reply"
	"cellserver/internal/redis/transact"
	"cellserver/internal/resp"
	"cellserver/internal/store"
	"cellserver/internal/wire/glob"
)

// scanQuery is SCAN cursor [MATCH pattern] [COUNT count] [TYPE type].
type scanQuery struct {
	cursor  uint64
	count   int
	pattern []byte                  // nil for all
	kind    func(limiter.Kind) bool // reports whether the type is wanted; nil for all
}

const (
	defaultScanCount = 10
	maxScanCount     = 1 << 20 // bounds a call's work; COUNT is a hint
)

func (k handlers) scanQuery(args [][]byte) (*scanQuery, error) {
	cursor, err := parseCursor(string(args[1]))
	if err != nil {
		return nil, err
	}
	q := &scanQuery{cursor: cursor, count: defaultScanCount}
	for args = args[2:]; len(args) > 0; args = args[2:] {
		if len(args) == 1 {
			return nil, reply.ErrSyntax
		}
		switch value := args[1]; glob.Fold(args[0]) {
		case "match":
			if err := k.checkPattern(value); err != nil {
				return nil, err
			}
			q.pattern = bytes.Clone(value)
		case "count":
			n, ok := resp.ParseInt(value)
			switch {
			case !ok:
				return nil, reply.ErrNotInteger
			case n < 1:
				return nil, reply.ErrSyntax
			}
			q.count = int(min(n, maxScanCount))
		case "type":
			name := glob.Fold(value)
			q.kind = func(k limiter.Kind) bool { return k.Type() == name }
		default:
			return nil, reply.ErrSyntax
		}
	}
	return q, nil
}

// parseCursor accepts what C's strtoul does: an empty text and a sign, too.
func parseCursor(text string) (uint64, error) {
	if text == "" {
		return 0, nil
	}
	if text[0] == '-' || text[0] == '+' {
		text = text[1:]
	}
	cursor, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, reply.Error("ERR invalid cursor")
	}
	return cursor, nil
}

// checkPattern bounds what a match costs.
func (k handlers) checkPattern(pattern []byte) error {
	if len(pattern) > k.MaxKeyBytes {
		return reply.TooLong("pattern is", k.MaxKeyBytes, "--max-key-bytes")
	}
	return nil
}

func (k handlers) scan(c execute.Call, all store.Walker, args [][]byte) error {
	q, err := k.scanQuery(args)
	if err != nil {
		return err
	}
	w := k.newWalk(c, all, q)
	done := func(c execute.Call) error {
		if err := transact.WalkFailed(all); err != nil {
			return err
		}
		c.Reply().Array(2)
		c.Reply().BulkString(strconv.FormatUint(w.cursor, 10))
		w.reply(c)
		return nil
	}
	if !c.InBackground() && w.isShort(k.MaxKeyBytes) && w.first(c.Now()) {
		return done(c)
	}
	return c.Background(w.many, done)
}

// keys is KEYS pattern. It walks as SCAN does, so it may or may not see concurrent writes.
func (k handlers) keys(c execute.Call, all store.Walker, args [][]byte) error {
	if err := k.checkPattern(args[1]); err != nil {
		return err
	}
	w := k.newWalk(c, all, &scanQuery{pattern: bytes.Clone(args[1]), count: math.MaxInt})
	return c.Background(w.many, func(c execute.Call) error {
		if err := transact.WalkFailed(all); err != nil {
			return err
		}
		if w.full() {
			return reply.Error("ERR the reply would be longer than " + strconv.Itoa(w.maxBytes) +
				" bytes, the limit of --max-output-bytes; use SCAN")
		}
		w.reply(c)
		return nil
	})
}
