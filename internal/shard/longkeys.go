package shard

import "encoding/binary"

// longKeys holds the keys that do not fit into a slot, which refers to them by index.
type longKeys struct {
	keys []string
	free []uint32
}

func (l *longKeys) get(s *slot) string { return l.keys[binary.LittleEndian.Uint32(s.key[:])] }

func (l *longKeys) put(s *slot, name []byte) {
	var i uint32
	if n := len(l.free); n > 0 {
		i = l.free[n-1]
		l.free = l.free[:n-1]
		l.keys[i] = string(name)
	} else {
		i = uint32(len(l.keys))
		l.keys = append(l.keys, string(name))
	}
	binary.LittleEndian.PutUint32(s.key[:], i)
}

// drop forgets a slot's key. When none is left, the room for them goes too.
func (l *longKeys) drop(s *slot) {
	i := binary.LittleEndian.Uint32(s.key[:])
	l.keys[i] = ""
	l.free = append(l.free, i)
	if len(l.free) == len(l.keys) {
		*l = longKeys{}
	}
}
