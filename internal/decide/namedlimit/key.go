package namedlimit

import (
	"crypto/sha256"
	"encoding/hex"
	"net/netip"
	"strconv"
)

// MaxParts is the largest number of parts of which a key is composed.
const MaxParts = 8

// AppendKey appends the key that is composed of parts. One part is the key itself; several have their lengths
// before them, as in 9:192.0.2.1,3:GET, and so has a single one that reads as such a list. Different lists of
// parts make different keys, whatever visitors put into them.
func AppendKey[T string | []byte](b []byte, parts ...T) []byte {
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
func SplitKey[T string | []byte](key T) (parts []T) {
	for rest := key; ; {
		n, digits := 0, 0
		for ; digits < len(rest) && digits < maxDigits && '0' <= rest[digits] && rest[digits] <= '9'; digits++ {
			n = n*10 + int(rest[digits]-'0')
		}
		if digits == 0 || digits == len(rest) || rest[digits] != ':' || digits > 1 && rest[0] == '0' {
			return nil
		}
		text := rest[digits+1:]
		if n > len(text) {
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

const maxDigits = 9 // of a part's length

const hashBytes = 16 // against a second secret with the same key

// HashPart returns a secret as a part of a key, which pages, logs and dumps show: the first 32 hexadecimal
// digits of its SHA-256.
func HashPart(secret string) string { return string(AppendHash(nil, []byte(secret))) }

// AppendHash appends the same; secret may be what is behind b.
func AppendHash(b, secret []byte) []byte {
	sum := sha256.Sum256(secret)
	return hex.AppendEncode(b, sum[:hashBytes])
}

// NetworkPart returns the part of a key for an address. For IPv6 it is the network, of so many bits: a host
// may use each address of it.
func NetworkPart(a netip.Addr, ipv6PrefixBits int) string {
	return string(AppendNetwork(nil, a, ipv6PrefixBits))
}

// AppendNetwork appends the same.
func AppendNetwork(b []byte, a netip.Addr, ipv6PrefixBits int) []byte {
	a = a.Unmap().WithZone("")
	if a.Is4() || ipv6PrefixBits >= a.BitLen() {
		return a.AppendTo(b)
	}
	p, _ := a.Prefix(ipv6PrefixBits) // never fails for IPv6
	return p.AppendTo(b)
}
