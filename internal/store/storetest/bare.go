package storetest

import "cellserver/internal/store"

type bare struct{ store.Store }

// Bare returns inner without its optional capabilities.
func Bare(inner store.Store) store.Store { return bare{inner} }
