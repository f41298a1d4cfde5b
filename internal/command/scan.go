package command

import (
	"bytes"
	"strconv"

	"cellserver/internal/glob"
	"cellserver/internal/resp"
	"cellserver/internal/shard"
)

// scanQuery is SCAN cursor [MATCH pattern] [COUNT count] [TYPE type].
type scanQuery struct {
	cursor  uint64
	count   int
	pattern []byte // nil for all
	none    bool   // no key is of the type
}

const (
	defaultScanCount = 10
	// maxScanCount bounds a call's work; Redis has no bound, but a caller cannot rely on how many come.
	maxScanCount = 1 << 20
)

func (s *Session) scanQuery(args [][]byte) (*scanQuery, error) {
	cursor, err := parseCursor(string(args[1]))
	if err != nil {
		return nil, err
	}
	q := &scanQuery{cursor: cursor, count: defaultScanCount}
	for args = args[2:]; len(args) > 0; args = args[2:] {
		if len(args) == 1 {
			return nil, errSyntax
		}
		switch value := args[1]; lower(args[0]) {
		case "match":
			if err := s.checkPattern(value); err != nil {
				return nil, err
			}
			q.pattern = bytes.Clone(value)
		case "count":
			n, ok := resp.ParseInt(value)
			switch {
			case !ok:
				return nil, errNotInteger
			case n < 1:
				return nil, errSyntax
			}
			q.count = int(min(n, maxScanCount))
		case "type":
			q.none = lower(value) != keyType
		default:
			return nil, errSyntax
		}
	}
	return q, nil
}

// parseCursor reads what C's strtoul would: also nothing at all, and a sign.
func parseCursor(text string) (uint64, error) {
	if text == "" {
		return 0, nil
	}
	if text[0] == '-' || text[0] == '+' {
		text = text[1:]
	}
	cursor, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, replyError("ERR invalid cursor")
	}
	return cursor, nil
}

// checkPattern bounds what a match costs.
func (s *Session) checkPattern(pattern []byte) error {
	if most := s.engine.config.MaxKeyBytes; len(pattern) > most {
		return replyError("ERR pattern is longer than " + strconv.Itoa(most) + " bytes, the limit of --max-key-bytes")
	}
	return nil
}

func scan(s *Session, args [][]byte) error {
	q, err := s.scanQuery(args)
	if err != nil {
		return err
	}
	keys := collector{maxBytes: s.engine.config.MaxReplyBytes}
	work := func() { s.scanSome(q, &keys) }
	reply := func(s *Session) {
		s.w.Array(2)
		s.w.BulkString(strconv.FormatUint(q.cursor, 10))
		keys.reply(&s.w)
	}
	if q.count <= asideKeys {
		work()
		reply(s)
		return nil
	}
	s.aside(work, reply)
	return nil
}

// scanSome collects about q.count keys in steps, and leaves the rest to the next call when their names are too long
// for a reply.
func (s *Session) scanSome(q *scanQuery, keys *collector) {
	for left := q.count; left > 0 && !keys.full(); left -= asideKeys {
		if q.cursor = s.scanStore(q, min(left, asideKeys), keys); q.cursor == 0 {
			return
		}
	}
}

// scanStore collects about count keys from q.cursor on, and returns the cursor of those behind them.
func (s *Session) scanStore(q *scanQuery, count int, keys *collector) uint64 {
	return s.whole().Scan(s.db, q.cursor, count, func(key shard.Key, _ int64) {
		if !q.none && (q.pattern == nil || glob.Match(q.pattern, key.Name)) {
			keys.add(key.Name)
		}
	})
}

// keysCommand is KEYS pattern. It walks the store as SCAN does, so what is written meanwhile may or may not be there.
func keysCommand(s *Session, args [][]byte) error {
	if err := s.checkPattern(args[1]); err != nil {
		return err
	}
	q := &scanQuery{pattern: bytes.Clone(args[1])}
	keys := collector{maxBytes: s.engine.config.MaxReplyBytes}
	s.aside(func() {
		for {
			q.cursor = s.scanStore(q, asideKeys, &keys)
			if q.cursor == 0 || keys.full() {
				return
			}
		}
	}, func(s *Session) {
		if keys.full() {
			s.failCommand(replyError("ERR the reply would be longer than " + strconv.Itoa(keys.maxBytes) +
				" bytes, the limit of --max-output-bytes; use SCAN"))
			return
		}
		keys.reply(&s.w)
	})
	return nil
}

// collector keeps keys for a reply.
type collector struct {
	maxBytes int
	w        resp.Writer
	n        int
}

func (c *collector) add(name []byte) {
	c.w.Bulk(name)
	c.n++
}

func (c *collector) full() bool { return len(c.w.Buf) > c.maxBytes }

func (c *collector) reply(w *resp.Writer) {
	w.Array(c.n)
	w.Buf = append(w.Buf, c.w.Buf...)
}
