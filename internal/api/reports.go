package api

// reportRoutes are those about what companies use.
func (s *Server) reportRoutes() []route { return nil }
