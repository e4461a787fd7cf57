// How much longer than on a machine of its own something may take. User Mode Linux has one slow processor for the program,
// the API server, all clients and all servers.

export const patience = process.env['UML'] === undefined ? 1 : 5
