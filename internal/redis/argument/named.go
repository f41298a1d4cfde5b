package argument

import (
	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/redis/reply"
	"cellserver/internal/resp"
	"cellserver/internal/store"
	"cellserver/internal/wire/catalog"
	"cellserver/internal/wire/glob"
)

// check returns the Request of CL.CHECK name key [quantity].
func check(named *namedlimit.Registry) Request {
	return func(q *store.Request, db uint16, args [][]byte, _ funnel.Reading, joined *[]byte) error {
		if len(args) < 3 || len(args) > 4 {
			return reply.Error("ERR Usage: cl.check <name> <key> [<quantity>]")
		}
		quantity := int64(1)
		if len(args) == 4 {
			var err error
			if quantity, err = Number(args[3]); err != nil {
				return err
			}
		}
		limit := named.Lookup(args[1])
		if limit == nil {
			return reply.Error("ERR no such limit '" + resp.PrintableN(args[1], namedlimit.MaxNameBytes) + "'; define it by CL.LIMIT SET or in --limits-file")
		}
		from := len(*joined)
		*joined = catalog.AppendJoined(*joined, args[1], args[2])
		q.Key = store.Key{DB: db, Name: (*joined)[from:len(*joined):len(*joined)]}
		q.Rule = limiter.OfNamed(limit.Named())
		q.Quantity = quantity
		return nil
	}
}

// Definition reads the arguments of CL.LIMIT SET.
func Definition(args [][]byte, reading funnel.Reading) (d namedlimit.Definition, err error) {
	d.Name, args = string(args[2]), args[3:]
	if last := len(args) - 1; glob.Fold(args[last]) == "shadow" {
		d.Shadow, args = true, args[:last]
	}
	if err := namedlimit.CheckName([]byte(d.Name)); err != nil {
		return d, reply.Error("ERR " + err.Error())
	}
	const numbers = 3 // of a window
	if len(args)%numbers != 0 || len(args) > namedlimit.MaxWindows*numbers {
		return d, reply.Error("ERR Usage: cl.limit set <name> <max_burst> <count per period> <period> ... [SHADOW], of 1 to 16 windows")
	}
	for ; len(args) > 0; args = args[numbers:] {
		var window [numbers]int64
		if err := Numbers(window[:], args); err != nil {
			return d, err
		}
		w, err := namedlimit.NewWindow(reading, window[0], window[1], window[2])
		if err != nil {
			return d, err
		}
		d.Windows = append(d.Windows, w)
	}
	return d, nil
}
