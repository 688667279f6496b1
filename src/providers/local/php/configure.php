<?php
// SPDX-License-Identifier: Apache-2.0
// configure.php - installs WordPress where it is not, and writes its settings. Input: JSON with root, url, title, user, password, email, signin, restored.
// Runs as the tenant, on the command line, before the site's route is open: nobody else ever sees the installer.

$in = json_decode(stream_get_contents(STDIN), true, 16, JSON_THROW_ON_ERROR);
define('ABSPATH', $in['root'] . '/');
define('WP_INSTALLING', true);
$at = parse_url($in['url']);
$_SERVER += [
    'HTTP_HOST' => $at['host'] . (isset($at['port']) ? ':' . $at['port'] : ''),
    'SERVER_NAME' => $at['host'],
    'SERVER_PROTOCOL' => 'HTTP/1.1',
    'REQUEST_METHOD' => 'GET',
    'REQUEST_URI' => ($at['path'] ?? '') . '/',
    'REMOTE_ADDR' => '127.0.0.1',
];

// WordPress would write to the new administrator, and ask itself for pretty links through a route that is closed.
function wp_new_blog_notification()
{
}

require_once ABSPATH . 'wp-load.php';
require_once ABSPATH . 'wp-admin/includes/upgrade.php';
add_filter('pre_http_request', fn() => new WP_Error('closed', 'no requests while WordPress is installed'));

$is_new = !is_blog_installed();
if ($is_new) {
    wp_install($in['title'], $in['user'], $in['email'], true, '', $in['password']);
}
wp_cache_flush();
$rewrite = $GLOBALS['wp_rewrite'];
if (get_option('permalink_structure') !== '/%postname%/') {
    $rewrite->set_permalink_structure('/%postname%/');
    $rewrite->flush_rules(false);
}
update_option('leasehold_signin', $in['signin']);
$user = get_user_by('login', $in['user']);
if ($in['restored'] && $user && !wp_check_password($in['password'], $user->user_pass, $user->ID)) {
    wp_set_password($in['password'], $user->ID);
}
if (!is_blog_installed() || ($is_new && !$user)) {
    fwrite(STDERR, "WordPress is not installed although the installer ended\n");
    exit(1);
}
// WordPress ends the program with status 0 when it gives up, so this line is what tells success.
echo json_encode(['installed' => $is_new, 'tables' => count($GLOBALS['wpdb']->tables('all')), 'version' => $GLOBALS['wp_version']]), "\n";
