# Made by `larder setup env`. curl, wget, git, and most programs obey these. Only http can be kept this way: https
# goes directly, for through a proxy it is a tunnel that nothing can read. For https that Larder may keep,
# use a mirror or the URL prefix: curl http://127.0.0.1:8098/https/example.org/file
http_proxy=http://127.0.0.1:8098
no_proxy=localhost,127.0.0.1,::1
export http_proxy no_proxy
