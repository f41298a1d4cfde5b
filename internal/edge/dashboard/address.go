package dashboard

import (
	"maps"
	"net/url"
	"slices"
	"strconv"

	g "maragu.dev/gomponents"

	"cellserver/internal/edge/dashboard/ask"
	"cellserver/internal/limiter"
)

// keyLink returns the address of a key, by the terms of its last call if they are known.
func (v *view) keyLink(name string, db uint16, terms limiter.Terms) string {
	return v.address("key", ask.KeyText([]byte(name)), "db", strconv.Itoa(int(db)), "by", v.asker.TermsText(terms))
}

// address returns that of the drawer with these parameters and their values, empty ones left out, and with
// the page's other choices.
func (v *view) address(asked ...string) string {
	query := v.choices()
	for i := 0; i < len(asked); i += 2 {
		if asked[i+1] != "" {
			query.Set(asked[i], asked[i+1])
		}
	}
	return "/?" + query.Encode()
}

// choices returns the query without what the drawer shows.
func (v *view) choices() url.Values {
	chosen := maps.Clone(v.query)
	for _, name := range []string{"key", "db", "limit", "by", "signin"} {
		chosen.Del(name)
	}
	return chosen
}

// Bounds of an address, which most links of the page repeat. A key of 4 KiB takes up to 25 KiB.
const (
	maxQueryBytes = 40 << 10
	maxValueBytes = 256 // of what is not a key
)

// readQuery returns the page's parameters, without those of its script and any others.
func readQuery(given url.Values) url.Values {
	query := url.Values{}
	for _, name := range []string{"key", "db", "limit", "by", "lang", "top", "sort", "filter", "unfold", "refresh", "signin"} {
		if given.Has(name) {
			value := given.Get(name)
			if name != "key" {
				value = value[:min(len(value), maxValueBytes)]
			}
			query.Set(name, value)
		}
	}
	return query
}

// withChoice returns the address with a choice changed; an empty value removes it.
func (v *view) withChoice(name, value string) string {
	query := maps.Clone(v.query)
	query.Set(name, value)
	if value == "" {
		query.Del(name)
	}
	return "/?" + query.Encode()
}

// kept returns the inputs by which a form keeps the rest of the query.
func kept(query url.Values) (inputs g.Group) {
	for _, name := range slices.Sorted(maps.Keys(query)) {
		inputs = append(inputs, hidden(name, query.Get(name)))
	}
	return inputs
}
