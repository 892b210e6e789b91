package api

// governanceRoutes are those about budgets and directories.
func (s *Server) governanceRoutes() []route { return nil }
