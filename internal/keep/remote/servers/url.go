package servers

import (
	"errors"
	"net"
	"net/url"
	"strconv"
	"strings"
)

type place struct {
	kind           kind
	tls            bool
	hosts          []string // host:port
	master         string   // as the sentinels name it
	db             int
	user, password string
}

type kind uint8

const (
	oneServer kind = iota
	clusterOf
	sentinels
)

func (k kind) scheme() string { return [...]string{"redis", "redis-cluster", "redis-sentinel"}[k] }

func (k kind) form() string {
	return [...]string{
		"redis://[user:password@]host[:port][/db]",
		"redis-cluster://[user:password@]host[:port],host[:port],...",
		"redis-sentinel://[user:password@]host[:port],host[:port],.../master[/db]",
	}[k]
}

func (p *place) String() string {
	s := p.kind.scheme()
	if p.tls {
		s = "rediss" + strings.TrimPrefix(s, "redis")
	}
	s += "://" + strings.Join(p.hosts, ",")
	if p.kind == sentinels {
		s += "/" + p.master
	}
	if p.db != 0 {
		s += "/" + strconv.Itoa(p.db)
	}
	return s
}

// parse parses a URL; its password may be given separately. No error quotes the URL: a wrong one may have a
// password anywhere.
func parse(text, password string) (place, error) {
	var p place
	scheme, rest, _ := strings.Cut(text, "://")
	if name, ok := strings.CutPrefix(scheme, "rediss"); ok {
		p.tls, scheme = true, "redis"+name
	}
	valid := false
	for k := oneServer; k <= sentinels; k++ {
		if scheme == k.scheme() {
			p.kind, valid = k, true
		}
	}
	if !valid {
		return place{}, errors.New("servers: a store's URL is " + oneServer.form() + ", " + clusterOf.form() + " or " +
			sentinels.form() + "; over TLS it begins with rediss instead of redis")
	}
	err := p.read(rest)
	if err == nil {
		err = p.setPassword(password)
	}
	if err != nil {
		return place{}, errors.New("servers: the store's URL: " + err.Error() + "; it is " + p.kind.form())
	}
	return p, nil
}

func (p *place) setPassword(separate string) error {
	switch {
	case separate != "" && p.password != "":
		return errors.New("it has a password, and another one is given apart; leave one of them out")
	case separate != "":
		p.password = separate
	case p.user != "" && p.password == "":
		return errors.New("the user has no password; give it by --store-password-file, or as user:password before the @")
	}
	return nil
}

func (p *place) read(rest string) error {
	if strings.ContainsAny(rest, "?#") {
		return errors.New("it has a ? or #, which a password must have as %3F or %23")
	}
	var path string
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		if err := p.readUser(rest[:at]); err != nil {
			return err
		}
		rest = rest[at+1:]
	}
	rest, path, _ = strings.Cut(rest, "/")
	if err := p.readHosts(rest); err != nil {
		return err
	}
	if p.kind == sentinels {
		p.master, path, _ = strings.Cut(path, "/")
		if p.master == "" {
			return errors.New("the name of the master is missing")
		}
	}
	if path != "" {
		db, err := strconv.Atoi(path)
		if err != nil || db < 0 {
			return errors.New("what follows the last / must be the number of a database")
		}
		if db != 0 && p.kind == clusterOf {
			return errors.New("a cluster has database 0 only")
		}
		p.db = db
	}
	return nil
}

func (p *place) readUser(text string) error {
	user, password, _ := strings.Cut(text, ":")
	var err, err2 error
	p.user, err = url.PathUnescape(user)
	p.password, err2 = url.PathUnescape(password)
	if err != nil || err2 != nil {
		return errors.New("the user or password has a % that is not followed by two hexadecimal digits; write it as %25")
	}
	return nil
}

func (p *place) readHosts(text string) error {
	hosts := strings.Split(text, ",")
	if len(hosts) > 1 && p.kind == oneServer {
		return errors.New("it has several hosts, which are a " + clusterOf.scheme() + " or " + sentinels.scheme())
	}
	for _, h := range hosts {
		host, port, err := net.SplitHostPort(h)
		if err != nil {
			if host, port = h, "6379"; p.kind == sentinels {
				port = "26379"
			}
			host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
			if !strings.HasPrefix(h, "[") && strings.Contains(h, ":") {
				return errors.New("an IPv6 address stands in brackets")
			}
		}
		if host == "" || strings.ContainsAny(host, "@/[] ") {
			return errors.New("a host is missing or is none")
		}
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return errors.New("a port is not a number from 1 to 65535")
		}
		p.hosts = append(p.hosts, net.JoinHostPort(host, port))
	}
	return nil
}
