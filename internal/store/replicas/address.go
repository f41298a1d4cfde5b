package replicas

import (
	"errors"
	"net"
	"strconv"
	"strings"
)

// Address is where a server answers clients.
type Address struct {
	Host string
	Port int
}

// String returns host:port, and "" for no address.
func (a Address) String() string {
	if a == (Address{}) {
		return ""
	}
	return net.JoinHostPort(a.Host, strconv.Itoa(a.Port))
}

// CheckHost refuses what is neither an IP address nor a name.
func CheckHost(host string) error {
	const most = 253
	known := func(c rune) bool {
		return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || strings.ContainsRune("-._:%", c)
	}
	if host == "" || len(host) > most || strings.ContainsFunc(host, func(c rune) bool { return !known(c) }) {
		return errors.New("the host must be an IP address or a name")
	}
	return nil
}

// ParseAddress reads host:port.
func ParseAddress(text string) (a Address, err error) {
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return a, errors.New("must be host:port")
	}
	if err := CheckHost(host); err != nil {
		return a, err
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return a, errors.New("must be host:port, with a port between 1 and 65535")
	}
	return Address{host, int(n)}, nil
}
