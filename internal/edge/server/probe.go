package server

import "context"

// Probe returns when what serves the connections has come around once since the call, or with an error that names a part
// that has not, and wraps ctx's. It is for those who must know whether the server still does its work, and asks the
// connections nothing: it is neither refused over MaxClients nor counted.
func (s *Server) Probe(ctx context.Context) error { return s.driver.Probe(ctx) }
