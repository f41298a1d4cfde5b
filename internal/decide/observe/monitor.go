package observe

import (
	"strconv"
	"strings"

	"cellserver/internal/wire/peer"
)

// Bounds of a line:
const (
	maxLineArgBytes = 8 << 10
	maxLineArgs     = 1 << 10
	maxLineBytes    = 64 << 10 // of all arguments, unquoted
)

// Line is a call as shown by MONITOR.
type Line struct {
	NowNs    int64
	DB       uint16
	Peer     *peer.Peer
	ByScript bool
	Args     [][]byte
}

// Append appends the line in Redis's format.
func (l *Line) Append(b []byte) []byte {
	us := l.NowNs / 1000
	b = strconv.AppendInt(append(b, '+'), us/1e6, 10)
	b = append(b, '.')
	for digit := int64(1e5); digit > 0; digit /= 10 {
		b = append(b, '0'+byte(us/digit%10))
	}
	b = append(strconv.AppendUint(append(b, " ["...), uint64(l.DB), 10), ' ')
	switch {
	case l.ByScript:
		b = append(b, "lua"...)
	case l.Peer.Unix:
		b = append(append(b, "unix:"...), strings.TrimSuffix(l.Peer.Addr, ":0")...)
	case l.Peer.Door != peer.RESP:
		b = append(append(append(b, l.Peer.Door.String()...), ':'), l.Peer.Addr...)
	default:
		b = append(b, l.Peer.Addr...)
	}
	b = append(b, ']')
	left := maxLineBytes
	for i, arg := range l.Args {
		if i == maxLineArgs || left <= 0 {
			b = append(b, ` "... (`...)
			b = append(strconv.AppendInt(b, int64(len(l.Args)-i), 10), ` more arguments)"`...)
			break
		}
		b = appendQuoted(append(b, ' '), arg)
		left -= min(len(arg), maxLineArgBytes)
	}
	return append(b, '\r', '\n')
}

// appendQuoted appends an argument with Redis's escapes, truncated.
func appendQuoted(b, arg []byte) []byte {
	const hex = "0123456789abcdef"
	cut := len(arg) - maxLineArgBytes
	if cut > 0 {
		arg = arg[:maxLineArgBytes]
	}
	b = append(b, '"')
	for _, c := range arg {
		if at := strings.IndexByte("\\\"\n\r\t\a\b", c); at >= 0 {
			b = append(b, '\\', `\"nrtab`[at])
		} else if c < ' ' || c > '~' {
			b = append(b, '\\', 'x', hex[c>>4], hex[c&15])
		} else {
			b = append(b, c)
		}
	}
	if cut > 0 {
		b = append(strconv.AppendInt(append(b, "... ("...), int64(cut), 10), " more bytes)"...)
	}
	return append(b, '"')
}
