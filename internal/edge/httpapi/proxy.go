package httpapi

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"cellserver/internal/decide"
	"cellserver/internal/limiter"
)

// checkForProxy is GET /v1/check/NAME?key=K or ?by=PARTS, with quantity=, at_most= and denied=.
func (a *API) checkForProxy(x *Exchange) (decide.Ask, error) {
	p, err := readQuery(x.Request.Query)
	if err != nil {
		return nil, err
	}
	key, hasKey := p.take("key")
	by, hasBy := p.take("by")
	quantity, most, denied := p.takeOr("quantity", "1"), p.takeOr("at_most", "false"), p.takeOr("denied", "429")
	if err := p.end(); err != nil {
		return nil, err
	}
	units, flags, err := readUnits(quantity, most)
	if err != nil {
		return nil, err
	}
	status := http.StatusTooManyRequests
	switch denied {
	case "429":
	case "401":
		status = http.StatusUnauthorized
	case "403":
		status = http.StatusForbidden
	default:
		return nil, bad("denied must be 401, 403 or 429, the status of a denial, got " + quote(denied))
	}
	b := x.key[:0]
	b = append(b, x.name...)
	limit := len(b)
	switch {
	case hasKey == hasBy:
		return nil, bad("give either key=, or by= with some of " + partNames)
	case hasKey:
		b = append(b, key...)
	default:
		if b, err = a.appendBy(b, x, by); err != nil {
			return nil, err
		}
	}
	x.key = b
	x.one[0] = decide.Request{Command: "CL.CHECK", Limit: b[:limit:limit], Key: b[limit:], Quantity: units}
	x.one[0].Spec.Flags = flags
	x.windowSec = 0
	return x.ask(status), nil
}

// readUnits reads the parameters quantity and at_most.
func readUnits(quantity, most string) (units int64, flags limiter.Flags, err error) {
	if units, err = strconv.ParseInt(quantity, 10, 64); err != nil || units < 0 {
		return 0, 0, bad("quantity must be an integer of at least 0, got " + quote(quantity) + "; POST /v1/refund gives units back")
	}
	switch most {
	case "false":
		return units, 0, nil
	case "true":
		if units < 1 {
			return 0, 0, bad("quantity must be at least 1 with at_most=true, got " + quote(quantity))
		}
		return units, limiter.AtMost, nil
	default:
		return 0, 0, bad("at_most must be true or false, got " + quote(most))
	}
}

const maxParameters = 5 // that a path has

// parameters are those of a query, which has none twice.
type parameters struct {
	names, values [maxParameters]string
	n             int
}

func readQuery(raw string) (p parameters, err error) {
	for raw != "" {
		var one string
		one, raw, _ = strings.Cut(raw, "&")
		if one == "" {
			continue
		}
		name, value, _ := strings.Cut(one, "=")
		if name, err = unescape(name); err == nil {
			value, err = unescape(value)
		}
		if err != nil {
			return p, bad("the query has a percent sign without two hexadecimal digits")
		}
		for _, known := range p.names[:p.n] {
			if known == name {
				return p, bad("the parameter " + quote(name) + " is there twice")
			}
		}
		if p.n == maxParameters {
			return p, bad("unknown parameter " + quote(name))
		}
		p.names[p.n], p.values[p.n] = name, value
		p.n++
	}
	return p, nil
}

func unescape(text string) (string, error) {
	if !strings.ContainsAny(text, "%+") {
		return text, nil
	}
	return url.QueryUnescape(text)
}

// takeOr is take with a default.
func (p *parameters) takeOr(name, otherwise string) string {
	if value, ok := p.take(name); ok {
		return value
	}
	return otherwise
}

// take returns a parameter and takes it out.
func (p *parameters) take(name string) (value string, ok bool) {
	for i := range p.n {
		if p.names[i] == name {
			value = p.values[i]
			p.n--
			p.names[i], p.values[i] = p.names[p.n], p.values[p.n]
			return value, true
		}
	}
	return "", false
}

// end returns an error if there is another parameter.
func (p *parameters) end() error {
	if p.n == 0 {
		return nil
	}
	return bad("unknown parameter " + quote(p.names[0]))
}
