package namedlimit

import (
	"crypto/sha256"
	"encoding/hex"
	"net/netip"
	"strconv"
	"strings"
)

// MaxParts is the largest number of parts of which a key is composed.
const MaxParts = 8

// AppendKey appends the key that is composed of parts. One part is the key itself; several have their lengths
// before them, as in 9:192.0.2.1,3:GET, and so has a single one that reads as such a list. Different lists of
// parts make different keys, whatever visitors put into them.
func AppendKey(b []byte, parts ...string) []byte {
	if len(parts) == 1 && SplitKey(parts[0]) == nil {
		return append(b, parts[0]...)
	}
	for i, part := range parts {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(strconv.AppendInt(b, int64(len(part)), 10), ':'), part...)
	}
	return b
}

// SplitKey returns the parts of a key that reads as a list of AppendKey's, nil of another key.
func SplitKey(key string) (parts []string) {
	for rest := key; ; {
		length, text, ok := strings.Cut(rest, ":")
		n, err := strconv.Atoi(length)
		if !ok || err != nil || n < 0 || n > len(text) || strconv.Itoa(n) != length {
			return nil
		}
		parts = append(parts, text[:n])
		if n == len(text) {
			return parts
		}
		if text[n] != ',' {
			return nil
		}
		rest = text[n+1:]
	}
}

const hashBytes = 16 // against a second secret with the same key

// HashPart returns a secret as a part of a key, which pages, logs and dumps show: the first 32 hexadecimal
// digits of its SHA-256.
func HashPart(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:hashBytes])
}

// NetworkPart returns the part of a key for an address. For IPv6 it is the network, of so many bits: a host
// may use each address of it.
func NetworkPart(a netip.Addr, ipv6PrefixBits int) string {
	a = a.Unmap().WithZone("")
	if a.Is4() || ipv6PrefixBits >= a.BitLen() {
		return a.String()
	}
	p, _ := a.Prefix(ipv6PrefixBits) // never fails for IPv6
	return p.String()
}
