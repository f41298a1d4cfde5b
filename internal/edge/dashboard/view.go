package dashboard

import (
	"net/http"
	"net/url"

	"cellserver/internal/edge/dashboard/words"
	"cellserver/internal/store"
)

// view is what one request is shown.
type view struct {
	page   *Page
	t      *words.Texts
	query  url.Values
	remote *store.Health // nil for a store in memory
	form   form
	sampled
}

func (p *Page) view(r *http.Request) *view {
	query := r.URL.Query()
	v := &view{page: p, t: textsFor(query.Get("lang"), r.Header.Get("Accept-Language")), query: query, sampled: p.newest()}
	if p.source.Remote != nil {
		st := p.source.Remote()
		v.remote = &st
	}
	v.form = p.newForm(v.t, query)
	return v
}

// now returns the newest point, or nil while there is none.
func (v *view) now() *point {
	if len(v.points) == 0 {
		return nil
	}
	return &v.points[len(v.points)-1]
}
