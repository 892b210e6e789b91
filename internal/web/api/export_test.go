package api

// Routes lists what is served as "GET /api/v2/tools".
func Routes() []string {
	var all []string
	for _, rt := range new(Server).routes() {
		all = append(all, rt.method+" "+rt.path)
	}
	return all
}
