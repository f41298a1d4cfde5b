package keys

import (
	"cellserver/internal/limiter"
	"cellserver/internal/limiter/value"
	"cellserver/internal/redis/execute"
	"cellserver/internal/redis/reply"
	"cellserver/internal/store"
	"cellserver/internal/wire/glob"
)

// Commands that compare values, or return what to compare with. A funnel's is its TAT, as GET returns it.

// delEx is DELEX key [IFEQ value | IFNE value | IFDEQ digest | IFDNE digest].
func delEx(c execute.Call, args [][]byte) error {
	switch len(args) {
	case 2:
		return del(c, args)
	case 4:
		return deleteIf(c, args[1], &limiter.Comparison{By: relation(glob.Fold(args[2])), With: args[3]})
	}
	return reply.ErrArity
}

// relation returns the meaning of an option in lower case.
func relation(option string) limiter.Relation {
	switch option {
	case "ifeq":
		return limiter.Equal
	case "ifne":
		return limiter.NotEqual
	case "ifdeq":
		return limiter.DigestEqual
	case "ifdne":
		return limiter.DigestNotEqual
	}
	return limiter.UnknownRelation
}

// delIfEq is DELIFEQ key value.
func delIfEq(c execute.Call, args [][]byte) error {
	return deleteIf(c, args[1], &limiter.Comparison{By: limiter.Equal, With: args[2]})
}

func deleteIf(c execute.Call, name []byte, comparison *limiter.Comparison) error {
	s := store.Setting{When: store.IfFound, If: comparison}
	if err := c.Set(name, &s); err != nil {
		return err
	}
	c.Reply().Int(execute.LimitedInt(s.Held))
	return nil
}

func digest(c execute.Call, args [][]byte) error {
	var sum [value.DigestBytes]byte
	found, err := false, error(nil)
	if seen := c.See(args[1], func(s *limiter.State) {
		var digits [20]byte
		var text []byte
		if text, err = limiter.ReadableText(digits[:0], s, c.Now()); err == nil {
			found, sum = true, value.Digest(text)
		}
	}); seen != nil {
		return seen
	}
	switch {
	case err != nil:
		return reply.StoreFailed(err)
	case found:
		c.Reply().Bulk(sum[:])
	default:
		c.Reply().Null()
	}
	return nil
}
