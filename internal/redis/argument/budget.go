package argument

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"strconv"

	"github.com/zeebo/xxh3"

	"cellserver/internal/decide"
	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/redis/reply"
	"cellserver/internal/resp"
	"cellserver/internal/store"
	"cellserver/internal/wire/catalog"
	"cellserver/internal/wire/glob"
)

const (
	maxPairs     = 32 // of a call about a hold
	maxHoldBytes = 32 // of an id
	maxHoldNs    = 24 * 3600 * 1e9
)

// pairs are the pairs of a call about a hold.
type pairs struct {
	All     []decide.Pair
	unknown []byte // the first name without a limit. Nothing is debited for it

	hash, all uint64 // of the keys, and of the keys with their units, both in any order
	joined    []byte // the keys
	hashes    [maxPairs]uint64
}

// read reads counted pairs, with units of at least least behind each if units is set, and returns the
// arguments behind them.
func (p *pairs) read(limits *namedlimit.Limits, db uint16, args [][]byte, countAt int, units bool, least int64) (rest [][]byte, err error) {
	n, err := Int(args[countAt]) // in the grammar of the row, by which the keys were checked
	args = args[countAt+1:]
	step := 2
	if units {
		step = 3
	}
	switch {
	case err != nil:
		return nil, err
	case n < 1 || n > maxPairs:
		return nil, reply.Error("ERR n, the number of pairs, must be 1 to " + strconv.Itoa(maxPairs) + ", got " + strconv.FormatInt(n, 10))
	case len(args) < step*int(n):
		return nil, reply.ErrArity
	}
	args, rest = args[:step*int(n)], args[step*int(n):]
	p.All, p.joined = make([]decide.Pair, n), make([]byte, 0, keyBytes(args, step))
	for i := range p.All {
		pair := args[step*i : step*(i+1)]
		if _, err := p.add(i, limits, db, pair[0], pair[1]); err != nil {
			return nil, err
		}
		if !units {
			continue
		}
		n, err := Number(pair[2])
		if err == nil {
			err = p.setUnits(i, n, least)
		}
		if err != nil {
			return nil, err
		}
	}
	return rest, nil
}

// setUnits sets the units of a pair, which are at least least.
func (p *pairs) setUnits(i int, units, least int64) error {
	if units < least {
		return &funnel.ArgumentError{Name: "units", Value: units, Least: least}
	}
	of := &p.All[i]
	of.Units = units
	p.all += xxh3.HashSeed(of.Key.Name, uint64(units))
	return nil
}

// keyBytes returns the bytes of all keys.
func keyBytes(args [][]byte, step int) (bytes int) {
	for i := 0; i < len(args); i += step {
		bytes += len(args[i]) + 1 + len(args[i+1])
	}
	return bytes
}

// add adds a pair, and returns the policy that decides it, nil without a limit of that name.
func (p *pairs) add(i int, limits *namedlimit.Limits, db uint16, name, key []byte) (policy *namedlimit.Policy, err error) {
	from := len(p.joined)
	p.joined = catalog.AppendJoined(p.joined, name, key)
	of := &p.All[i]
	of.Key = store.Key{DB: db, Name: p.joined[from:len(p.joined):len(p.joined)]}
	hash := xxh3.Hash(of.Key.Name)
	for j, other := range p.hashes[:i] {
		if other == hash && bytes.Equal(p.All[j].Key.Name, of.Key.Name) {
			return nil, reply.Error("ERR the pair of '" + resp.PrintableN(name, namedlimit.MaxNameBytes) + "' and '" +
				resp.Printable(key) + "' is given twice; give it once, with all its units")
		}
	}
	p.hashes[i] = hash
	p.hash += hash
	if limit := limits.Lookup(name); limit != nil {
		of.Named, policy = limit.Named(key, &limits.Moment)
		return policy, nil
	}
	if p.unknown == nil {
		p.unknown = name
	}
	of.Named = &limiter.NamedLimit{Constant: limiter.Unlimited}
	return nil, nil
}

// noLimit returns the error of a name without a limit, nil if there is none.
func (p *pairs) noLimit() error {
	if p.unknown == nil {
		return nil
	}
	return NoLimit(p.unknown)
}

// Holding reads CL.MRESERVE n name key units [name key units ...] TTL time [CHARGE] [ID id], and returns the
// id, which is a new one if the call gives none.
func Holding(limits *namedlimit.Limits, db uint16, args [][]byte) (h *decide.Holding, id []byte, err error) {
	var p pairs
	options, err := p.read(limits, db, args, 1, true, 1)
	if err == nil {
		err = p.noLimit()
	}
	if err != nil {
		return nil, nil, err
	}
	for i := range p.All {
		if !p.All[i].Named.Debits() {
			return nil, nil, reply.ExactWindowHolds(string(args[2+3*i]))
		}
	}
	h = &decide.Holding{Pairs: p.All}
	if id, err = holdOptions(&h.Hold, options); err != nil {
		return nil, nil, err
	}
	return h, p.identify(&h.Hold, id), nil
}

// identify sets what a hold is known by, and returns its id, which is a new one if the call gives none.
func (p *pairs) identify(h *limiter.Hold, id []byte) []byte {
	if id == nil {
		id, h.New = NewHoldID(), true
	}
	h.ID, h.Call = limiter.HoldIDOf(id), p.call(h)
	return id
}

// call tells the call from others. The order of the pairs, and how the time is written, make no difference.
func (p *pairs) call(h *limiter.Hold) limiter.HoldCall {
	var rest [17]byte
	binary.LittleEndian.PutUint64(rest[:], p.all)
	binary.LittleEndian.PutUint64(rest[8:], uint64(h.TTLNs))
	if h.Charge {
		rest[16] = 1
	}
	return limiter.HoldCall{Pairs: uint32(p.hash), All: uint32(xxh3.Hash(rest[:]))}
}

// holdOptions reads the options of CL.MRESERVE, in any order, and returns the id, nil for none.
func holdOptions(h *limiter.Hold, options [][]byte) (id []byte, err error) {
	for len(options) > 0 {
		used := 2
		switch option := options[0]; {
		case glob.IsFolded(option, "charge") && !h.Charge:
			h.Charge, used = true, 1
		case len(options) < 2:
			return nil, reply.ErrSyntax
		case glob.IsFolded(option, "ttl") && h.TTLNs == 0:
			h.TTLNs, err = holdTime("TTL", options[1])
		case glob.IsFolded(option, "id") && id == nil:
			id, err = holdID(options[1])
		default:
			return nil, reply.ErrSyntax
		}
		if err != nil {
			return nil, err
		}
		options = options[used:]
	}
	if h.TTLNs == 0 {
		return nil, reply.Error("ERR TTL is missing: the time, such as TTL 30s, after which a hold that is not committed ends")
	}
	return id, nil
}

func holdTime(name string, arg []byte) (ns int64, err error) {
	if ns, err = Duration(name, arg); err == nil {
		err = checkHoldTime(name, ns, resp.Printable(arg))
	}
	return ns, err
}

func checkHoldTime(name string, ns int64, said string) error {
	if ns > maxHoldNs {
		return reply.Error("ERR " + name + " must be at most 24h, got " + said)
	}
	return nil
}

func holdID(arg []byte) ([]byte, error) {
	if len(arg) == 0 || len(arg) > maxHoldBytes {
		return nil, reply.Error("ERR id must have 1 to " + strconv.Itoa(maxHoldBytes) + " bytes")
	}
	return arg, nil
}

// NewHoldID returns the id of a hold that is given none.
func NewHoldID() []byte {
	var random [maxHoldBytes / 2]byte
	binary.LittleEndian.PutUint64(random[:], rand.Uint64())
	binary.LittleEndian.PutUint64(random[8:], rand.Uint64())
	return hex.AppendEncode(make([]byte, 0, maxHoldBytes), random[:])
}

// Settling reads CL.MCOMMIT id n name key units [name key units ...]. unknown is the error of a name without
// a limit, which matters only where there is no hold: it may have been made before the limit was deleted.
func Settling(limits *namedlimit.Limits, db uint16, args [][]byte) (s *decide.Settling, unknown, err error) {
	var p pairs
	id, err := holdID(args[1])
	if err != nil {
		return nil, nil, err
	}
	if err := p.readAll(limits, db, args, 2, true); err != nil {
		return nil, nil, err
	}
	return &decide.Settling{Pairs: p.All, ID: limiter.HoldIDOf(id), Hash: uint32(p.hash)}, p.noLimit(), nil
}

// Extending reads CL.MEXTEND id time n name key [name key ...]. unknown is as in Settling.
func Extending(limits *namedlimit.Limits, db uint16, args [][]byte) (e *decide.Extending, unknown, err error) {
	var p pairs
	id, err := holdID(args[1])
	if err != nil {
		return nil, nil, err
	}
	ttlNs, err := holdTime("time", args[2])
	if err != nil {
		return nil, nil, err
	}
	if err := p.readAll(limits, db, args, 3, false); err != nil {
		return nil, nil, err
	}
	return &decide.Extending{Pairs: p.All, ID: limiter.HoldIDOf(id), Hash: uint32(p.hash), TTLNs: ttlNs}, p.noLimit(), nil
}

// readAll is read of pairs with nothing behind them.
func (p *pairs) readAll(limits *namedlimit.Limits, db uint16, args [][]byte, countAt int, units bool) error {
	rest, err := p.read(limits, db, args, countAt, units, 0)
	if err == nil && len(rest) > 0 {
		return reply.ErrArity
	}
	return err
}
