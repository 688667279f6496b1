<?php
// SPDX-License-Identifier: Apache-2.0
// settle.php - installs WordPress where it is not, brings its tables to the version of the image, and writes the settings of the sign-in. Runs before
// the site's rule is open: nobody else ever sees the installer.

require __DIR__ . '/begin.php';
define('WP_INSTALLING', true);

// WordPress would write to the new administrator, and ask itself for pretty links through a rule that is closed.
function wp_new_blog_notification()
{
}

require_once ABSPATH . 'wp-load.php';
require_once ABSPATH . 'wp-admin/includes/upgrade.php';
add_filter('pre_http_request', fn() => new WP_Error('closed', 'no requests while WordPress is installed'));

$name = (string) getenv('LEASEHOLD_ADMIN_USER');
$password = (string) getenv('LEASEHOLD_ADMIN_PASSWORD');
$signin = json_decode((string) getenv('LEASEHOLD_SIGNIN'), true);
if ($name === '' || $password === '' || !is_array($signin) || empty($signin['client_id'])) {
    fwrite(STDERR, "LEASEHOLD_ADMIN_USER, LEASEHOLD_ADMIN_PASSWORD or LEASEHOLD_SIGNIN is missing, or not what it should be\n");
    exit(1);
}

$is_new = !is_blog_installed();
if ($is_new) {
    wp_install((string) getenv('LEASEHOLD_SITE_TITLE'), $name, (string) getenv('LEASEHOLD_SITE_EMAIL'), true, '', $password);
} else {
    wp_upgrade();
}
wp_cache_flush();
if (get_option('permalink_structure') !== '/%postname%/' && $is_new) {
    $GLOBALS['wp_rewrite']->set_permalink_structure('/%postname%/');
    $GLOBALS['wp_rewrite']->flush_rules(false);
}
update_option('mo_oauth_client_config', $signin);

$user = get_user_by('login', $name);
if (getenv('LEASEHOLD_RESTORED') && $user && !wp_check_password($password, $user->user_pass, $user->ID)) {
    wp_set_password($password, $user->ID);
}
if (!is_blog_installed() || ($is_new && !$user)) {
    fwrite(STDERR, "WordPress is not installed although the installer ended\n");
    exit(1);
}
echo json_encode(['done' => true, 'installed' => $is_new, 'version' => $GLOBALS['wp_version']]), "\n";
